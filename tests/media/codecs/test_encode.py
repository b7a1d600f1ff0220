from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from gateway.media.codecs.encode import Wish, encode
from gateway.types import ImageFormat, OutputFormat
from tests.media.codecs.samples import corners, mode_of, near, opened, quarters

RANDOM = np.random.default_rng(10)
SCREEN = Image.fromarray(quarters(400, 300))
PHOTO = Image.fromarray(RANDOM.integers(0, 255, (300, 400, 3), np.uint8))
# Half the pixels differ from their neighbours, but only by dots of one size.
HALFTONE = Image.fromarray(np.repeat(RANDOM.integers(0, 2, (300, 400, 1), np.uint8) * 255, 3, axis=2))


def smooth(grain: int) -> Image.Image:
    """A slope over the picture with noise on it: sky, walls, skin."""
    slope = np.add.outer(np.arange(300) // 4, np.arange(400) // 4)[:, :, None] + RANDOM.integers(
        0, grain, (300, 400, 3)
    )
    return Image.fromarray(slope.astype(np.uint8))


def page(grain: int) -> Image.Image:
    """Dark strokes on paper with noise: a scan."""
    ink = np.where(RANDOM.integers(0, 9, (300, 100, 1)).repeat(4, axis=1) == 0, 40, 230)
    return Image.fromarray((ink + RANDOM.integers(0, grain, (300, 400, 1))).astype(np.uint8)[:, :, 0])


def edged(quality: int) -> Image.Image:
    """A screen that went through JPEG: edges off the grid of blocks, with what that leaves around them."""
    file = io.BytesIO()
    drawn = Image.fromarray(np.roll(quarters(400, 300), (3, 5), (0, 1)))
    for place in range(0, 300, 7):
        drawn.paste((place % 256, 0, 90), (place, place, place + 3, 299))
    drawn.save(file, "JPEG", quality=quality)
    return Image.open(file)


def wish(output: OutputFormat = OutputFormat.AUTO, *, lossy: bool = False, keeps: bool = False) -> Wish:
    return Wish(output, 95, lossy_source=lossy, keeps_pixels=keeps)


@pytest.mark.parametrize(
    ("image", "asked", "written"),
    [
        (PHOTO, wish(lossy=True), ImageFormat.JPEG),
        (edged(75), wish(lossy=True), ImageFormat.JPEG),
        (SCREEN, wish(lossy=True), ImageFormat.PNG),
        (smooth(8), wish(), ImageFormat.JPEG),
        (smooth(8), wish(keeps=True), ImageFormat.PNG),
        (smooth(1), wish(), ImageFormat.PNG),
        (HALFTONE, wish(), ImageFormat.PNG),
        (HALFTONE, wish(lossy=True), ImageFormat.JPEG),
        (page(12), wish(), ImageFormat.PNG),
        (page(12).convert("RGB"), wish(), ImageFormat.JPEG),
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


def test_a_png_from_a_lossy_source_is_the_smaller_file() -> None:
    for picture in (SCREEN, edged(75), edged(95), smooth(1), PHOTO):
        chosen, _ = encode(picture, wish(lossy=True))
        assert len(chosen) <= len(encode(picture, wish(OutputFormat.JPEG))[0])


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (7, 71), (7, 72), (7, 73), (7, 1_000)])
def test_pictures_of_any_shape_are_judged(size: tuple[int, int]) -> None:
    for image in (Image.new("RGB", size, (9, 8, 7)), Image.new("L", size, 9)):
        data, _ = encode(image, wish())
        assert near(corners(opened(data)), corners(np.asarray(image.convert("RGB"))), 1)
