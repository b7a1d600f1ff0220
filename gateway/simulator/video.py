"""Videos as vLLM 0.32.0 takes them: a list of JPEG frames, or a file that PyAV opens; and what they cost.

Written from the engine's files independently of the gateway's arithmetic: `multimodal/media/video.py` (frames are one
second apart, at most 32 of them unless the server was told otherwise), `multimodal/video.py` (the loaders of Qwen2-VL
and Qwen3-VL: two frames a second, 4 to 768), transformers' `video_processing_qwen2_vl.py` and `..._qwen3_vl.py` (sizes)
and `qwen3_vl.py` (`<1.5 seconds>` and the two markers around each pair of frames). Frames are
decoded to the last pixel.
"""

import asyncio
import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.simulator import tokens
from gateway.simulator.geometry import MAX_ASPECT_RATIO, Family, Grid
from gateway.simulator.media import read_data_url, read_source
from gateway.simulator.raster import Finish, OversizedImageError, UnreadableImageError, decode
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import EngineKind, SimulatorSettings

_FRAMES_HEAD = "data:video/jpeg;base64,"
_PAIR = 2
_SAMPLED_PER_S = 2.0
_FEWEST, _MOST = 4, 768
# Pixels: of one frame in Qwen2-VL and Qwen2.5-VL, of all frames together in their successors.
_FRAME_PIXELS = (128 * 28 * 28, 768 * 28 * 28)
_TOTAL_PIXELS = (4_096, 25_165_824)
_STAMPED = frozenset({Family.QWEN3_VL, Family.QWEN3_5})


@dataclass(frozen=True, slots=True)
class VideoInput:
    """A video part as it came."""

    pointer: str
    url: str


@dataclass(frozen=True, slots=True)
class Film:
    """A loaded video: how many frames of which size were taken, when each is shown, and its identity in the caches."""

    width: int
    height: int
    times_s: tuple[float, ...]
    identifier: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """What stands for a film between the template's two markers; `pads` of `token_ids` are embeddings."""

    token_ids: tuple[int, ...]
    pads: int


def expand(film: Film, family: Family, grid: Grid) -> Expansion:
    """The film's tokens. Raises Refusal for a shape that the processor refuses."""
    pairs = math.ceil(len(film.times_s) / _PAIR)
    try:
        rows, columns = _cells(film, family, grid)
    except ValueError as error:
        raise Refusal(400, f"Failed to apply processor on data={{'videos': [...]}}: {error}") from None
    pad = tokens.SPECIAL_IDS["<|video_pad|>"]
    each = rows * columns
    if family not in _STAMPED:
        return Expansion((pad,) * (pairs * each), pairs * each)
    ids: list[int] = []
    for pair in range(pairs):
        first = film.times_s[pair * _PAIR]
        second = film.times_s[min(pair * _PAIR + 1, len(film.times_s) - 1)]
        stamp = f"{(first + second) / 2:.1f}"
        ids += [tokens.token_id(piece) for piece in ("<", *stamp, " seconds", ">")]
        ids.append(tokens.SPECIAL_IDS[tokens.VISION_START])
        ids += [pad] * each
        ids.append(tokens.SPECIAL_IDS[tokens.VISION_END])
    return Expansion(tuple(ids), pairs * each)


def _cells(film: Film, family: Family, grid: Grid) -> tuple[int, int]:
    """Rows and columns of merged tokens in each pair of frames. Raises ValueError in the processor's words."""
    width, height, unit, count = film.width, film.height, grid.unit_px, len(film.times_s)
    if family in _STAMPED:
        if count < _PAIR:
            raise ValueError(f"t:{count} must be larger than temporal_factor:{_PAIR}")
        if width < unit or height < unit:
            enlarge = max(unit / width, unit / height)
            width, height = int(width * enlarge), int(height * enlarge)
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise ValueError(
            f"absolute aspect ratio must be smaller than 200, got {max(width, height) / min(width, height)}"
        )
    rows, columns = round(height / unit), round(width / unit)
    least, most, held, frames = *_FRAME_PIXELS, 1, 1
    if family in _STAMPED:
        least, most, held, frames = *_TOTAL_PIXELS, round(count / _PAIR) * _PAIR, count
    area = held * rows * columns * unit * unit
    if area > most:
        shrink = math.sqrt(frames * width * height / most)
        return max(1, math.floor(height / shrink / unit)), max(1, math.floor(width / shrink / unit))
    if area < least:
        enlarge = math.sqrt(least / (frames * width * height))
        return math.ceil(height * enlarge / unit), math.ceil(width * enlarge / unit)
    return rows, columns


async def load(inputs: Sequence[VideoInput], settings: SimulatorSettings) -> list[Film]:
    """All videos of a request, in order. Raises Refusal."""
    return [await _load(source, settings) for source in inputs]


async def _load(source: VideoInput, settings: SimulatorSettings) -> Film:
    if source.url[: len(_FRAMES_HEAD)].lower() == _FRAMES_HEAD:
        return await asyncio.to_thread(_of_frames, source.url[len(_FRAMES_HEAD) :], settings)
    data = await read_source(source.url, EngineKind.VLLM)
    return await asyncio.to_thread(_of_file, data, settings)


def _of_frames(text: str, settings: SimulatorSettings) -> Film:
    count = settings.video_frames
    parts = text.split(",", count)[:count] if count > 0 else text.split(",")
    files = [read_data_url(f"data:image/jpeg;base64,{part}", EngineKind.VLLM) for part in parts]
    try:
        rasters = [decode(file, settings.max_image_pixels, Finish.UPRIGHT_ON_WHITE) for file in files]
    except OversizedImageError as error:
        raise Refusal(500, str(error), "InternalServerError") from None
    except UnreadableImageError as error:
        raise Refusal(400, f"Failed to load image: {error}") from None
    if len({(raster.width, raster.height) for raster in rasters}) != 1:
        raise Refusal(500, "all input arrays must have the same shape", "InternalServerError")
    times_s = tuple(index / settings.video_fps for index in range(len(rasters)))
    return Film(rasters[0].width, rasters[0].height, times_s, hashlib.sha256(text.encode()).hexdigest())


def _of_file(data: bytes, settings: SimulatorSettings) -> Film:
    """Frames as the model's own loader takes them from a file. Raises Refusal."""
    import av  # noqa: PLC0415  (an extra; a process that never sees a video never loads it)
    import av.error  # noqa: PLC0415

    try:
        with av.open(io.BytesIO(data), "r") as file:
            stream = file.streams.video[0]
            rate = float(stream.guessed_rate or 0)
            total = stream.frames or math.floor((file.duration or 0) / 1e6 * rate + 0.5)
            frame = next(file.decode(stream))
    except (av.error.FFmpegError, IndexError, StopIteration):
        raise Refusal(400, "Failed to load video: could not open video stream") from None
    width, height = (frame.height, frame.width) if frame.rotation % 180 else (frame.width, frame.height)
    times_s = tuple(index / rate for index in _taken(total, rate, settings.geometry_family))
    return Film(width, height, times_s, hashlib.sha256(data).hexdigest())


def _taken(total: int, rate: float, family: Family) -> list[int]:
    if family in _STAMPED:
        count = min(max(int(total / rate * _SAMPLED_PER_S), _FEWEST), _MOST, total)
        return [round(index * (total - 1) / max(1, count - 1)) for index in range(count)]
    most = min(_MOST, total) // _PAIR * _PAIR
    count = math.floor(min(max(total / rate * _SAMPLED_PER_S, _FEWEST), most, total) / _PAIR) * _PAIR or total
    return [math.floor(index * total / count) for index in range(count)]
