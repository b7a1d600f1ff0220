from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.simulator.pictures import PictureLoader
from gateway.simulator.prompt import ImageInput
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import EngineKind, SimulatorSettings
from tests.simulator import drawn


@pytest.fixture
def loaders() -> Iterator[Any]:
    made: list[PictureLoader] = []

    def make(**changes: Any) -> PictureLoader:
        made.append(PictureLoader(SimulatorSettings(**changes)))
        return made[-1]

    yield make
    for loader in made:
        loader.close()


def _image(data: bytes | None, **fields: Any) -> ImageInput:
    return ImageInput("messages.0.content.0", None if data is None else drawn.data_url(data), **fields)


async def test_tokens_come_from_the_decoded_raster_under_the_cap(loaders: Any) -> None:
    data = drawn.jpeg(1280, 960)
    (free,) = await loaders().load([_image(data)])
    (capped,) = await loaders(max_pixels=640 * 480).load([_image(data)])
    assert (free.picture.tokens, capped.picture.tokens) == (1200, 300)
    assert (free.sent_bytes, free.sent_sha256) == (len(data), hashlib.sha256(data).hexdigest())


async def test_without_uuid_equal_bytes_are_one_picture(loaders: Any) -> None:
    loader = loaders()
    first, second, other = await loader.load(
        [_image(drawn.jpeg(64, 64)), _image(drawn.jpeg(64, 64)), _image(drawn.png(64, 64))]
    )
    assert first.picture.identifier == second.picture.identifier != other.picture.identifier
    assert [entry.cache_hit for entry in (first, second, other)] == [False, True, False]
    assert (loader.queries, loader.hits) == (3, 1)


async def test_an_id_alone_is_served_from_the_cache(loaders: Any) -> None:
    loader = loaders()
    (sent,) = await loader.load([_image(drawn.jpeg(64, 96), uuid="u-a")])
    (known,) = await loader.load([_image(None, uuid="u-a")])
    assert known.picture == sent.picture
    assert (known.sent_bytes, known.sent_raster) == (0, None)


async def test_an_unknown_id_alone_is_a_cache_miss(loaders: Any) -> None:
    with pytest.raises(Refusal, match="Cache miss for image at index 1 but data is not provided") as caught:
        await loaders().load([_image(drawn.jpeg(64, 64)), _image(None, uuid="u-b")])
    assert caught.value.status == 400


async def test_neither_data_nor_id_is_refused(loaders: Any) -> None:
    with pytest.raises(Refusal, match=r"multi_modal_uuids\['image'\]\[0\] is missing"):
        await loaders().load([_image(None)])


async def test_a_known_id_answers_with_its_first_picture(loaders: Any) -> None:
    loader = loaders()
    (first,) = await loader.load([_image(drawn.jpeg(64, 64), uuid="u")])
    (second,) = await loader.load([_image(drawn.jpeg(640, 480, drawn.GREEN), uuid="u")])
    assert second.picture == first.picture
    assert second.sent_raster is not None
    assert second.sent_raster.width == 640


async def test_eviction_and_clearing_make_misses(loaders: Any) -> None:
    # 64 tokens × 32² × 6 bytes: one picture fits, two do not.
    loader = loaders(mm_cache_bytes=500_000)
    await loader.load([_image(drawn.jpeg(64, 64), uuid="a"), _image(drawn.jpeg(64, 64), uuid="b")])
    with pytest.raises(Refusal, match="Cache miss"):
        await loader.load([_image(None, uuid="a")])
    await loader.load([_image(None, uuid="b")])
    loader.clear()
    with pytest.raises(Refusal, match="Cache miss"):
        await loader.load([_image(None, uuid="b")])


async def test_counting_alone_neither_fills_nor_reads_the_cache(loaders: Any) -> None:
    loader = loaders()
    await loader.load([_image(drawn.jpeg(64, 64), uuid="a")], is_cached=False)
    with pytest.raises(Refusal, match="Cache miss"):
        await loader.load([_image(None, uuid="a")])
    with pytest.raises(Refusal, match="Cache miss"):
        await loader.load([_image(None, uuid="a")], is_cached=False)


async def test_vllm_names_the_processor_that_refused_a_strip(loaders: Any) -> None:
    with pytest.raises(Refusal, match="Failed to apply Qwen3VLProcessor on data=") as caught:
        await loaders().load([_image(drawn.png(2010, 10))])
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("engine", "data", "status"),
    [
        (EngineKind.VLLM, b"junk", 400),
        (EngineKind.SGLANG, b"junk", 500),
        (EngineKind.VLLM, drawn.huge_png_header(20_000, 9_000), 500),
        (EngineKind.SGLANG, drawn.png(2010, 10), 400),
    ],
)
async def test_bad_media_has_the_engines_status(loaders: Any, engine: EngineKind, data: bytes, status: int) -> None:
    with pytest.raises(Refusal) as caught:
        await loaders(engine=engine).load([_image(data)])
    assert caught.value.status == status


async def test_sglang_compares_a_content_hash_with_the_bytes(loaders: Any) -> None:
    data = drawn.jpeg(64, 64)
    digest = hashlib.sha256(data).hexdigest()
    loader = loaders(engine=EngineKind.SGLANG)
    await loader.load([_image(data, content_hash=f"sha256:{digest}")])
    with pytest.raises(Refusal, match=r"content hash mismatch for media_data\[0\]: expected sha256:0"):
        await loader.load([_image(data, content_hash=f"sha256:{'0' * 64}")])
    with pytest.raises(Refusal, match="must be of the form"):
        await loader.load([_image(data, content_hash=digest)])
    trusting = loaders(engine=EngineKind.SGLANG, verify_content_hash=False)
    await trusting.load([_image(data, content_hash=f"sha256:{'0' * 64}")])


async def test_sglang_knows_pictures_by_their_pixels(loaders: Any) -> None:
    pixels = drawn.marked(64, 48)
    files = [drawn.vips(pixels, ".png", compression=level) for level in (1, 9)]
    first, second = await loaders(engine=EngineKind.SGLANG).load([_image(data) for data in files])
    assert first.picture.identifier == second.picture.identifier
