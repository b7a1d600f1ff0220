from __future__ import annotations

import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders import look_at
from gateway.media.codecs.decoders import pdf as renderer
from gateway.media.codecs.decoders.pdf import measure_pdf, render_page
from gateway.types import ImageFormat, Page, Size
from tests.media.codecs.samples import pdf


def test_pages_are_measured_at_150_dots_an_inch() -> None:
    found = measure_pdf(pdf(2))
    assert (found.format, found.raster, found.frames) == (ImageFormat.PDF, Size(417, 208), 2)
    assert found.pages == (Page(Size(417, 208)), Page(Size(417, 312)))
    assert measure_pdf(pdf()).pages == ()


def test_stated_rasters_are_bounded() -> None:
    poster = measure_pdf(pdf(size=(14_000, 14_000))).raster
    assert poster.pixels <= 16_777_216
    assert max(measure_pdf(pdf(size=(14_400, 2))).raster.width, 1) <= 16_384


def test_a_page_is_rendered_in_the_size_asked_for() -> None:
    raster = render_page(pdf(), Size(200, 100), 0)
    assert raster.samples.shape == (100, 200, 4)
    assert not raster.alpha
    assert raster.samples[10, 10, :3].tolist() == [255, 0, 0]
    assert raster.samples[90, 10, :3].tolist() == [0, 0, 255]
    assert raster.samples[5, 190, :3].tolist() == [255, 255, 255]
    assert (raster.samples[60:90, 110:180, :3].max(axis=2) < 90).sum() > 100, "its font is not embedded"


def test_the_same_page_is_rendered_to_the_same_pixels() -> None:
    assert (render_page(pdf(), Size(333, 111), 0).samples == render_page(pdf(), Size(333, 111), 0).samples).all()


def test_other_pages() -> None:
    data = pdf(3)
    assert render_page(data, Size(100, 100), 2).samples[5, 5, :3].tolist() == [255, 0, 0]
    with pytest.raises(Undecodable, match="Page 4"):
        render_page(data, Size(100, 100), 3)


@pytest.mark.parametrize("data", [b"%PDF-1.7", pdf()[:200], pdf(0)])
def test_damaged_documents_are_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        measure_pdf(data)


def test_a_password_is_named() -> None:
    locked = pdf().replace(
        b"trailer<<",
        b"trailer<</ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -4"
        b"/O<%s>/U<%s>>>" % (b"11" * 32, b"22" * 32),
    )
    with pytest.raises(Undecodable, match="password"):
        measure_pdf(locked)


def test_only_where_documents_are_asked_for_is_a_pdf_opened() -> None:
    assert look_at(pdf(), documents=True).frames == 1
    with pytest.raises(UnsupportedFormat, match="not accepted here"):
        look_at(pdf())


def test_without_its_renderer_a_pdf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "_pdfium", None)
    with pytest.raises(UnsupportedFormat, match=r"without its renderer \(extra pdf\)"):
        measure_pdf(pdf())
