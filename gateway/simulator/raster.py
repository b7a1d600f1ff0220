"""Decoding as a real engine does it: strictly and to the last pixel, then the facts that answers and tests rest on.

libvips decodes all formats but BMP, which imagecodecs does; both are imported on the first picture, in a thread, so
that a process that never sees one never loads them. A file that ends early is refused, as vLLM and SGLang (Pillow) do.
What a raster becomes differs by engine: vLLM turns it upright by EXIF and lays transparency on white; SGLang does
neither.
"""

import hashlib
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from gateway.simulator.geometry import Fitted

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Pixels: TypeAlias = NDArray[numpy.uint8]

_UPRIGHT = 1


class Finish(StrEnum):
    """What an engine makes of orientation tags and transparency: vLLM turns upright and lays on white, SGLang takes the
    stored pixels and drops the alpha channel."""

    UPRIGHT_ON_WHITE = "upright_on_white"
    AS_STORED = "as_stored"


class UnreadableImageError(ValueError):
    """The bytes are no picture; the message is the engine's."""


class OversizedImageError(ValueError):
    """More pixels than the engine allows to decode."""


@dataclass(frozen=True, slots=True)
class Raster:
    """A decoded picture. `stored_*` are the file's own sides, `width` and `height` those the model sees;
    `fingerprint` is over the model's RGB pixels, `mean_rgb` their average."""

    format: str
    stored_width: int
    stored_height: int
    orientation: int
    width: int
    height: int
    mean_rgb: tuple[int, int, int]
    fingerprint: str

    @property
    def mean_hex(self) -> str:
        return "#{:02x}{:02x}{:02x}".format(*self.mean_rgb)


@dataclass(frozen=True, slots=True)
class Picture:
    """A raster with what it costs; `identifier` is the identity that the engine's caches use."""

    raster: Raster
    fitted: Fitted
    identifier: str

    @property
    def tokens(self) -> int:
        return self.fitted.tokens


def decode(data: bytes, limit_pixels: int, finish: Finish) -> Raster:
    """The raster in `data`. Raises UnreadableImageError, and OversizedImageError before any pixel is decoded."""
    if data[:4] == b"GIF8":
        # Pillow counts the canvas; libvips would not look at one that no frame fills.
        canvas_width, canvas_height = struct.unpack_from("<HH", data.ljust(10, b"\0"), 6)
        _refuse_oversized(canvas_width, canvas_height, limit_pixels)
    if data[:2] == b"BM":
        name, orientation, stored, pixels = _decode_bmp(data, limit_pixels)
    else:
        name, orientation, stored, pixels = _decode_vips(data, limit_pixels, finish)
    height, width = pixels.shape[:2]
    # Odd strides, or a sample of fine stripes would see one of their two colours only.
    stride_rows, stride_columns = height // 64 | 1, width // 64 | 1
    red, green, blue = pixels[::stride_rows, ::stride_columns].reshape(-1, 3).mean(axis=0).round().astype(int).tolist()
    digest = hashlib.sha256(f"{width}x{height}:".encode())
    digest.update(pixels.tobytes())
    return Raster(name, stored[0], stored[1], orientation, width, height, (red, green, blue), digest.hexdigest())


def _refuse_oversized(width: int, height: int, limit_pixels: int) -> None:
    if width * height > limit_pixels:
        raise OversizedImageError(
            f"Image size ({width * height} pixels) exceeds limit of {limit_pixels} pixels, "
            "could be decompression bomb DOS attack."
        )


def _decode_vips(data: bytes, limit_pixels: int, finish: Finish) -> tuple[str, int, tuple[int, int], "Pixels"]:
    import pyvips  # noqa: PLC0415 (see the module's docstring)

    # Operations on buffers never recur, so libvips' operation cache would only hold their memory.
    pyvips.cache_set_max(0)
    try:
        image = pyvips.Image.new_from_buffer(data, "", fail_on="error")
    except pyvips.Error:
        raise UnreadableImageError("cannot identify image file <_io.BytesIO object>") from None
    name = str(image.get("vips-loader")).removesuffix("_buffer").removesuffix("load").removeprefix("ns")
    if name in {"svg", "pdf"}:
        raise UnreadableImageError("cannot identify image file <_io.BytesIO object>")
    stored = (int(image.width), int(image.height))
    _refuse_oversized(*stored, limit_pixels)
    orientation = int(image.get("orientation")) if image.get_typeof("orientation") else _UPRIGHT
    if not 1 <= orientation <= 8:
        orientation = _UPRIGHT
    try:
        # 16-bit rasters are scaled to 8 by the conversion; CMYK passes through the file's or a stock profile.
        image = image.colourspace("srgb")
        if image.hasalpha():
            image = image.flatten(background=[255, 255, 255]) if finish is Finish.UPRIGHT_ON_WHITE else image[:3]
        if image.format != "uchar":
            image = image.cast("uchar")
        if finish is Finish.UPRIGHT_ON_WHITE and orientation != _UPRIGHT:
            image = image.autorot()
        pixels: Pixels = image.numpy()
    except pyvips.Error:
        raise UnreadableImageError("image file is truncated (0 bytes not processed)") from None
    return name, orientation, stored, pixels


def _decode_bmp(data: bytes, limit_pixels: int) -> tuple[str, int, tuple[int, int], "Pixels"]:
    import imagecodecs  # noqa: PLC0415
    import numpy  # noqa: PLC0415

    # BITMAPINFOHEADER: 32-bit width at 18, height at 22 (negative when stored top down).
    width = int.from_bytes(data[18:22], "little", signed=True)
    height = abs(int.from_bytes(data[22:26], "little", signed=True))
    _refuse_oversized(width, height, limit_pixels)
    try:
        pixels = numpy.asarray(imagecodecs.bmp_decode(data))
    except (imagecodecs.BmpError, ValueError):
        raise UnreadableImageError("image file is truncated (0 bytes not processed)") from None
    if pixels.ndim == 2:
        pixels = numpy.repeat(pixels[:, :, None], 3, axis=2)
    return "bmp", _UPRIGHT, (width, height), numpy.ascontiguousarray(pixels[:, :, :3])
