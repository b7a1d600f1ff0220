"""Turns the image parts of one request into pictures, through the engine's multimodal cache.

vLLM: a part's identity is its `uuid`, trusted blindly, else the hash of its bytes; known identities give the picture
that was seen first, whatever bytes came along. A part without data is served from the cache or refused. SGLang: the
identity is over the decoded pixels, and `content_hash` is compared with the bytes.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gateway.simulator.caches import WeightedLru
from gateway.simulator.disaggregation import read_picture
from gateway.simulator.geometry import AspectRatioError, fit
from gateway.simulator.media import read_source
from gateway.simulator.prompt import ImageInput
from gateway.simulator.raster import Finish, OversizedImageError, Picture, Raster, UnreadableImageError, decode
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import EngineKind, SimulatorSettings

_CONTENT_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CHANNELS_AND_FRAMES = 6


@dataclass(frozen=True, slots=True)
class Loaded:
    """A part as received: the picture it stands for, and its own bytes (None when only an id came)."""

    source: ImageInput
    picture: Picture
    sent_bytes: int
    sent_sha256: str | None
    sent_raster: Raster | None
    cache_hit: bool


class PictureLoader:
    """Owns the decoding threads and the multimodal cache of one engine."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self._settings = settings
        self._grid = settings.grid
        self._cache: WeightedLru[Picture] = WeightedLru(settings.mm_cache_bytes)
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sim-decode")
        self.queries = 0
        self.hits = 0
        self.received_bytes = 0

    def clear(self) -> None:
        self._cache.clear()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def load(self, inputs: Sequence[ImageInput], *, is_cached: bool = True) -> list[Loaded]:
        """All pictures of a request, in order. Raises Refusal for the first that cannot be had.

        `is_cached` False leaves the multimodal cache alone, as /tokenize does: an id without data is then refused.
        """
        if self._settings.engine is EngineKind.SGLANG:
            return [await self._load_sglang(index, source) for index, source in enumerate(inputs)]
        if not is_cached:
            return [await self._load_uncached(index, source) for index, source in enumerate(inputs)]
        return [await self._load_vllm(index, source) for index, source in enumerate(inputs)]

    async def _load_vllm(self, index: int, source: ImageInput) -> Loaded:
        left = read_picture(source, self._settings) if source.embedded else None
        if left is not None:
            return Loaded(source, left, 0, None, None, cache_hit=True)
        if not source.url:
            return self._from_cache(index, source)
        data = await read_source(source.url, EngineKind.VLLM)
        digest, raster = await self._examine(data)
        identifier = digest if source.uuid is None else source.uuid
        self.queries += 1
        known = self._cache.get(identifier)
        if known is not None:
            self.hits += 1
            return Loaded(source, known, len(data), digest, raster, cache_hit=True)
        picture = self._fitted(raster, identifier)
        # One byte a value: two frames of three channels for each pixel of the fitted raster.
        self._cache.put(identifier, picture, picture.tokens * self._grid.unit_px**2 * _CHANNELS_AND_FRAMES)
        return Loaded(source, picture, len(data), digest, raster, cache_hit=False)

    async def _load_uncached(self, index: int, source: ImageInput) -> Loaded:
        if not source.url:
            raise Refusal(400, f"Cache miss for image at index {index} but data is not provided.")
        data = await read_source(source.url, EngineKind.VLLM)
        digest, raster = await self._examine(data)
        return Loaded(source, self._fitted(raster, digest), len(data), digest, raster, cache_hit=False)

    def _from_cache(self, index: int, source: ImageInput) -> Loaded:
        if source.uuid is None:
            place = f"['image'][{index}]"
            raise Refusal(400, f"multi_modal_data{place} is empty but multi_modal_uuids{place} is missing.")
        self.queries += 1
        known = self._cache.get(source.uuid)
        if known is None:
            raise Refusal(400, f"Cache miss for image at index {index} but data is not provided.")
        self.hits += 1
        return Loaded(source, known, 0, None, None, cache_hit=True)

    async def _load_sglang(self, index: int, source: ImageInput) -> Loaded:
        data = await read_source(source.url or "", EngineKind.SGLANG)
        digest, raster = await self._examine(data)
        self._check_content_hash(index, source.content_hash, digest)
        return Loaded(source, self._fitted(raster, raster.fingerprint), len(data), digest, raster, cache_hit=False)

    def _check_content_hash(self, index: int, claimed: str | None, digest: str) -> None:
        if claimed is None:
            return
        if not _CONTENT_HASH.fullmatch(claimed):
            raise Refusal(400, "content_hash must be of the form sha256:<64 hex digits>")
        if self._settings.verify_content_hash and claimed != f"sha256:{digest}":
            message = f"content hash mismatch for media_data[{index}]: expected {claimed}, got sha256:{digest}"
            raise Refusal(400, message)

    async def _examine(self, data: bytes) -> tuple[str, Raster]:
        """The SHA-256 of the file and what it shows."""
        self.received_bytes += len(data)
        is_vllm = self._settings.engine is EngineKind.VLLM
        loop = asyncio.get_running_loop()
        limit = self._settings.max_image_pixels
        finish = Finish.UPRIGHT_ON_WHITE if is_vllm else Finish.AS_STORED
        try:
            return await loop.run_in_executor(self._threads, _digest_and_decode, data, limit, finish)
        except OversizedImageError as error:
            raise Refusal(500, str(error), "InternalServerError") from None
        except UnreadableImageError as error:
            if is_vllm:
                raise Refusal(400, f"Failed to load image: {error}") from None
            # SGLang lists no exception class for damaged media, so it ends as an unexpected error.
            raise Refusal(500, f"Internal server error: {error}", "InternalServerError") from None

    def _fitted(self, raster: Raster, identifier: str) -> Picture:
        try:
            return Picture(raster, fit(raster.width, raster.height, self._grid), identifier)
        except AspectRatioError as error:
            if self._settings.engine is EngineKind.SGLANG:
                raise Refusal(400, str(error)) from None
            processor = f"{''.join(p.capitalize() for p in self._settings.geometry_family.split('_'))}Processor"
            message = f"Failed to apply {processor.replace('Vl', 'VL')} on data={{'images': [...]}}: {error}"
            raise Refusal(400, message) from None


def _digest_and_decode(data: bytes, limit_pixels: int, finish: Finish) -> tuple[str, Raster]:
    return hashlib.sha256(data).hexdigest(), decode(data, limit_pixels, finish)
