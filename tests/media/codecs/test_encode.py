from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from gateway.media.codecs.encode import Wish, encode
from gateway.types import ImageFormat, OutputFormat
from tests.media.codecs.samples import mode_of, opened, quarters

SCREEN = Image.fromarray(quarters(400, 300))
PHOTO = Image.fromarray(np.random.default_rng(10).integers(0, 255, (300, 400, 3), np.uint8))


def wish(output: OutputFormat = OutputFormat.AUTO, *, lossy: bool = False, keeps: bool = False) -> Wish:
    return Wish(output, 95, lossy_source=lossy, keeps_pixels=keeps)


@pytest.mark.parametrize(
    ("image", "asked", "written"),
    [
        (PHOTO, wish(lossy=True), ImageFormat.JPEG),
        (SCREEN, wish(lossy=True), ImageFormat.JPEG),
        (SCREEN, wish(), ImageFormat.PNG),
        (PHOTO, wish(), ImageFormat.JPEG),
        (PHOTO, wish(keeps=True), ImageFormat.PNG),
        (PHOTO, wish(OutputFormat.PNG, lossy=True), ImageFormat.PNG),
        (SCREEN, wish(OutputFormat.JPEG, keeps=True), ImageFormat.JPEG),
        (PHOTO.convert("L"), wish(), ImageFormat.JPEG),
        (SCREEN.convert("L"), wish(), ImageFormat.PNG),
    ],
)
def test_the_format_follows_source_and_content(image: Image.Image, asked: Wish, written: ImageFormat) -> None:
    data, found = encode(image, asked)
    assert found is written
    with Image.open(io.BytesIO(data)) as shown:
        assert (shown.format, shown.size) == (written.value.upper(), image.size)


@pytest.mark.parametrize("output", [OutputFormat.JPEG, OutputFormat.PNG])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBX"])
def test_grey_stays_grey_and_padding_vanishes(mode: str, output: OutputFormat) -> None:
    data, _ = encode(SCREEN.convert("RGBX" if mode == "RGBX" else mode), wish(output))
    assert mode_of(data) == ("L" if mode == "L" else "RGB")


def test_png_is_exact() -> None:
    data, _ = encode(PHOTO, wish(OutputFormat.PNG))
    assert (opened(data) == np.asarray(PHOTO)).all()


def test_jpeg_keeps_full_colour_resolution_and_carries_no_metadata() -> None:
    data, _ = encode(SCREEN, wish(OutputFormat.JPEG))
    with Image.open(io.BytesIO(data)) as shown:
        assert {component[1:3] for component in shown.layer} == {(1, 1)}  # type: ignore[attr-defined]
        assert set(shown.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_quality_is_the_plans() -> None:
    low = Wish(OutputFormat.JPEG, 40, lossy_source=True, keeps_pixels=False)
    assert len(encode(PHOTO, low)[0]) < len(encode(PHOTO, wish(OutputFormat.JPEG))[0]) / 2


def test_equal_pixels_make_equal_bytes_in_either_layout() -> None:
    for output in (OutputFormat.JPEG, OutputFormat.PNG):
        assert encode(PHOTO, wish(output)) == encode(PHOTO.convert("RGBX"), wish(output))
