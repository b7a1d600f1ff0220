"""PDF pages by PDFium (pypdfium2's raw bindings; permissive licences), an extra, used only where a policy lists `pdf`.

PDFium reads from memory, runs no script (its wheel is built without an engine for one), fills no form, and is given no
folder of fonts: text whose fonts are not embedded is drawn with those compiled into it, on every machine the same.
A page has no pixels of its own: its raster is stated at 150 dots an inch (ten-point text is then about twenty pixels
high), within bounds, and a smaller plan is rendered at the plan's size instead of being shrunk afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.raster import Raster
from gateway.types import MAX_PAGES, ImageFormat, Page, Probe, Size

_DPI, _POINTS_PER_INCH = 150, 72
# Bounds of a page's stated raster: a poster is rendered at fewer dots, a stamp at one pixel at least.
_MAX_PIXELS, _MAX_SIDE = 16_777_216, 16_384
_PASSWORD_ERROR = 4  # fpdfview.h: FPDF_ERR_PASSWORD
_BGRX, _ANNOTATIONS, _REVERSE_BYTES = 3, 0x01, 0x10
_WHITE = 0xFFFFFFFF


def _load() -> Any:
    try:
        import pypdfium2_raw as pdfium  # noqa: PLC0415  an extra
    except ImportError:
        return None
    no_folders = (ctypes.POINTER(ctypes.c_char) * 1)()
    config = pdfium.FPDF_LIBRARY_CONFIG(version=2, m_pUserFontPaths=no_folders)
    pdfium.FPDF_InitLibraryWithConfig(config)
    return pdfium


_pdfium = _load()


def has_pdf() -> bool:
    """Whether PDF can be rendered here."""
    return _pdfium is not None


def measure_pdf(data: bytes) -> Probe:
    """Pages and their sizes. Raises Undecodable; UnsupportedFormat without the renderer."""
    with _opened(data) as document:
        count = int(_pdfium.FPDF_GetPageCount(document))
        if count < 1:
            raise Undecodable("The PDF has no page.")
        pages = tuple(Page(_raster(document, index)) for index in range(min(count, MAX_PAGES)))
    several = pages if count > 1 else ()
    return Probe(ImageFormat.PDF, pages[0].raster, frames=count, pages=several)


def render_page(data: bytes, size: Size, page: int) -> Raster:
    """One page, white behind it, in the size asked for. Raises Undecodable."""
    samples = np.empty((size.height, size.width, 4), np.uint8)
    with _opened(data) as document, _page(document, page) as opened:
        bitmap = _pdfium.FPDFBitmap_CreateEx(
            size.width, size.height, _BGRX, samples.ctypes.data_as(ctypes.c_void_p), samples.strides[0]
        )
        if not bitmap:
            raise MemoryError
        try:
            _pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, size.width, size.height, _WHITE)
            flags = _ANNOTATIONS | _REVERSE_BYTES
            _pdfium.FPDF_RenderPageBitmap(bitmap, opened, 0, 0, size.width, size.height, 0, flags)
        finally:
            _pdfium.FPDFBitmap_Destroy(bitmap)
    return Raster(samples)


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    if _pdfium is None:
        raise UnsupportedFormat(
            "PDF documents cannot be rendered here: the gateway was installed without its renderer (extra pdf). "
            "Send pages as PNG or JPEG."
        )
    document = _pdfium.FPDF_LoadMemDocument64(data, len(data), None)
    if not document:
        if _pdfium.FPDF_GetLastError() == _PASSWORD_ERROR:
            raise Undecodable("The PDF is protected by a password.")
        raise Undecodable("The PDF is cut or damaged.")
    try:
        yield document
    finally:
        _pdfium.FPDF_CloseDocument(document)


@contextmanager
def _page(document: Any, index: int) -> Iterator[Any]:
    page = _pdfium.FPDF_LoadPage(document, index)
    if not page:
        raise Undecodable(f"Page {index + 1} of the PDF is cut or damaged.")
    try:
        yield page
    finally:
        _pdfium.FPDF_ClosePage(page)


def _raster(document: Any, index: int) -> Size:
    """The stated raster of a page, whose size is in points and already turned as the page says."""
    points = _pdfium.FS_SIZEF()
    if not _pdfium.FPDF_GetPageSizeByIndexF(document, index, points):
        raise Undecodable(f"Page {index + 1} of the PDF is cut or damaged.")
    width, height = max(points.width, 1.0), max(points.height, 1.0)
    scale = min(_DPI / _POINTS_PER_INCH, (_MAX_PIXELS / (width * height)) ** 0.5, _MAX_SIDE / max(width, height))
    return Size(max(1, round(width * scale)), max(1, round(height * scale)))
