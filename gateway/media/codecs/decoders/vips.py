"""PNG, TIFF and animations by libvips, and the one place where libvips is loaded and tamed.

Single-threaded, without operation cache, loaders marked untrusted blocked (SVG among them), never more than one page.
Any error fails the picture: at the level ``truncated`` libtiff's are swallowed, and rows it lacks come out black.
The loader is named, so a file cannot choose another one than its probe did.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.inks import inks_to_rgb
from gateway.media.codecs.decoders.profile import inks_to_srgb
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.types import ImageFormat, Probe


def load_vips() -> Any:
    """Import pyvips with its limits set. They are read when libvips starts, so nothing else may import it first."""
    os.environ["VIPS_CONCURRENCY"] = "1"
    os.environ["VIPS_BLOCK_UNTRUSTED"] = "1"
    os.environ["VIPS_WARNING"] = "0"  # its presence silences a line of log for every odd file
    import pyvips  # noqa: PLC0415  the environment must be set before libvips starts

    pyvips.block_untrusted_set(True)  # again, for a process in which something else imported it first
    pyvips.cache_set_max(0)
    pyvips.cache_set_max_mem(0)
    pyvips.cache_set_max_files(0)
    return pyvips


_vips = load_vips()
_LOADERS = {
    ImageFormat.PNG: "pngload_buffer",
    ImageFormat.TIFF: "tiffload_buffer",
    ImageFormat.WEBP: "webpload_buffer",
    ImageFormat.GIF: "gifload_buffer",
    ImageFormat.AVIF: "heifload_buffer",
}
# An AVIF has its primary picture, which libvips takes when it is not told a number.
_PAGED = (ImageFormat.TIFF, ImageFormat.WEBP, ImageFormat.GIF)
_DIRECT = ("srgb", "rgb", "rgb16", "b-w", "grey16", "multiband")


def decode_page(
    data: bytes, probe: Probe, page: int = 0, *, salvage: bool = False, ink_profile: bytes | None = None
) -> Raster:
    """One page or frame, composed on its canvas; what a salvaged file lacks is black or transparent.

    Raises Undecodable, UnsupportedFormat, MemoryError.
    """
    try:
        image = _load(data, probe.format, page, salvage=salvage)
        if image.format not in ("uchar", "ushort"):
            raise UnsupportedFormat("Images with other than unsigned samples of up to 16 bits are not accepted.")
        if image.interpretation == "cmyk":
            inks = raster_from(image.numpy(), probe.raster).samples
            converted = inks_to_srgb(inks, ink_profile)
            return Raster(inks_to_rgb(inks) if converted is None else converted)
        if image.interpretation not in _DIRECT:
            image = image.colourspace("srgb")
        # A TIFF's fourth sample may mean anything; only the probe knows whether it is transparency.
        transparent = bool(image.hasalpha()) and (probe.has_alpha or probe.format is not ImageFormat.TIFF)
        if image.bands == 3 and image.format == "uchar":
            # The resizer takes four bytes a pixel without a copy; the fourth costs half as much here as it does there.
            image = image.bandjoin(255)
        raster = raster_from(image.numpy(), probe.raster)
    except _vips.Error as error:
        if "out of memory" in str(error):
            raise MemoryError from error
        name = probe.format.value.upper()
        raise Undecodable(f"The {name}'s data is cut or damaged.", detail=str(error)) from error
    return replace(raster, alpha=raster.alpha and transparent)


def _load(data: bytes, kind: ImageFormat, page: int, *, salvage: bool) -> Any:
    loader = getattr(_vips.Image, _LOADERS[kind])
    pages = {"page": page, "n": 1} if kind in _PAGED else {}
    return loader(data, fail_on="none" if salvage else "error", access="sequential", **pages)
