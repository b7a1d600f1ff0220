"""From a file's bytes to pixels, one library per format. Never PIL: its build here lacks later security fixes.

The formats below are the allow-list of decoders: what has no line is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Protocol

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.apng import decode_apng_frame
from gateway.media.codecs.decoders.bmp import decode_bmp
from gateway.media.codecs.decoders.flat import decode_gif, decode_still_webp
from gateway.media.codecs.decoders.heif import decode_avif, decode_heic, has_heic
from gateway.media.codecs.decoders.ico import decode_ico
from gateway.media.codecs.decoders.jpeg import decode_jpeg
from gateway.media.codecs.decoders.jpeg2000 import decode_jpeg2000
from gateway.media.codecs.decoders.pdf import has_pdf, measure_pdf, render_page
from gateway.media.codecs.decoders.png import decode_png, holds_together
from gateway.media.codecs.decoders.profile import to_srgb
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.decoders.vips import decode_page
from gateway.media.codecs.probe import probe_all, sniff
from gateway.media.codecs.probe.profile import embedded_profile
from gateway.media.codecs.probe.tiff import probe_tiff
from gateway.media.codecs.probe.window import Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

__all__ = ["Raster", "Wanted", "decode", "extras", "look_at"]


class Wanted(Protocol):
    """What of a plan matters to decoders (``ImagePlan`` says what each means)."""

    @property
    def target(self) -> Size: ...
    @property
    def frame(self) -> int: ...
    @property
    def to_srgb(self) -> bool: ...
    @property
    def salvage(self) -> bool: ...


# Decoders to which nothing but the file and its header matters.
_ALIKE: Mapping[ImageFormat, Callable[[bytes, Probe], Raster]] = {
    ImageFormat.AVIF: decode_avif,
    ImageFormat.HEIC: decode_heic,
    ImageFormat.JPEG2000: decode_jpeg2000,
    ImageFormat.ICO: decode_ico,
}


def extras() -> tuple[str, ...]:
    """Optional decoders that are installed, with their versions: two fleets that differ here make other pictures."""
    return (
        *((f"pillow-heif{version('pillow-heif')}",) if has_heic() else ()),
        *((f"pypdfium2-{version('pypdfium2')}",) if has_pdf() else ()),
    )


def look_at(data: bytes, *, documents: bool = False) -> Probe:
    """The header of a whole file; ``documents`` lets PDF be opened. Raises Undecodable, UnsupportedFormat.

    A PNG that is there to its end and damaged within is as incomplete as one that was cut off.
    """
    if documents and sniff(data) is ImageFormat.PDF:
        return measure_pdf(data)
    probe = probe_all(data)
    if probe.format is ImageFormat.PNG and probe.complete and not holds_together(data):
        return replace(probe, complete=False)
    return probe


def decode(data: bytes, probe: Probe, at_least: Size, plan: Wanted) -> Raster:
    """Decode the plan's frame or page of the file, as stored, not rotated; ``probe`` describes that one.

    A decoder that can shrink while decoding may deliver fewer pixels than ``probe.raster``, never fewer than
    ``at_least`` on either side; a page of a PDF is rendered in the plan's own size. Raises Undecodable,
    UnsupportedFormat, MemoryError.
    """
    if not probe.complete and not plan.salvage:
        raise Undecodable("The image's data ends too early.")
    if probe.format is ImageFormat.TIFF and plan.frame:
        probe = probe_tiff(Window(data, data, len(data)), plan.frame)
    profile = embedded_profile(data, probe.format, plan.frame) if plan.to_srgb else None
    if probe.colour is ColourModel.CMYK and probe.format in (ImageFormat.JPEG, ImageFormat.TIFF):
        return _decode(data, probe, at_least, plan, profile)
    return to_srgb(_decode(data, probe, at_least, plan, None), profile)


def _decode(data: bytes, probe: Probe, at_least: Size, plan: Wanted, profile: bytes | None) -> Raster:
    """``profile`` is that of a picture of inks, which a decoder has to apply before inks become colours."""
    match probe.format:
        case ImageFormat.JPEG:
            return decode_jpeg(data, probe, at_least, salvage=plan.salvage, ink_profile=profile)
        case ImageFormat.WEBP if probe.frames == 1:
            return decode_still_webp(data, probe)
        case ImageFormat.BMP:
            return decode_bmp(data, probe, salvage=plan.salvage)
        case ImageFormat.GIF if not plan.frame and not plan.salvage:
            return decode_gif(data, probe)
        case ImageFormat.PNG if plan.frame:
            return decode_apng_frame(data, probe, plan.frame)
        case ImageFormat.PNG if not plan.salvage:
            return decode_png(data, probe)
        case ImageFormat.PNG | ImageFormat.TIFF | ImageFormat.WEBP | ImageFormat.GIF:
            return decode_page(data, probe, plan.frame, salvage=plan.salvage, ink_profile=profile)
        case ImageFormat.PDF:
            return render_page(data, plan.target, plan.frame)
        case _ if probe.format in _ALIKE:
            return _ALIKE[probe.format](data, probe)
        case _:
            raise UnsupportedFormat(f"Images in {probe.format.value.upper()} format are not accepted.")
