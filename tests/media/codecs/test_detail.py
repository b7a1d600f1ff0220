"""The measure on drawn pictures: what is smooth, fine, or text; and that it is the same however it comes."""

from __future__ import annotations

import io
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gateway.errors import Undecodable
from gateway.media.codecs.decoders import look_at
from gateway.media.codecs.detail import brightness, detail_of, measure
from gateway.models.detail import TEXT_PERMILLE, adapted_pixels
from gateway.types import Detail, ImageFormat, Probe, Size

Grey: TypeAlias = NDArray[np.uint8]
WORDS = "The quick brown fox jumps over the lazy dog 0123456789, invoice total due in thirty days. "
ORIGINAL = 12_192_768
FLOOR = 65_536


def smooth(width: int = 1600, height: int = 1200) -> Grey:
    """Soft light, as behind a portrait."""
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    light: Grey = np.asarray(128 + 60 * np.sin(columns / width * 5) + 40 * np.cos(rows / height * 4), dtype=np.uint8)
    return light


def clouds(octaves: int, width: int = 1600, height: int = 1200) -> Grey:
    """Noise at so many scales, the finest an octave above the last: more octaves, finer detail."""
    rng, total = np.random.default_rng(7), np.zeros((height, width), np.float32)
    for octave in range(octaves):
        cells = 4 * 2**octave
        layer = Image.fromarray(rng.integers(0, 256, (cells * 3 // 4, cells), dtype=np.uint8))
        total += np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC)).astype(np.float32) - 128
    whole: Grey = np.clip(total / octaves**0.5 * 0.6 + 128, 0, 255).astype(np.uint8)
    return whole


def page(letter_height: int, width: int = 1240, height: int = 1754) -> Grey:
    """Lines of print on paper, letters of so many pixels."""
    picture = Image.new("L", (width, height), 246)
    draw = ImageDraw.Draw(picture)
    for top in range(60, height - 2 * letter_height, letter_height * 3 // 2):
        mask = print_of(WORDS, letter_height).crop((0, 0, width - 120, letter_height))
        draw.bitmap((60, top), mask, fill=24)
    return np.asarray(picture)


def print_of(words: str, letter_height: int) -> Image.Image:
    font = ImageFont.load_default_imagefont()
    _, top, right, bottom = font.getbbox(words)
    mask = Image.new("L", (int(right), int(bottom - top)), 0)
    ImageDraw.Draw(mask).text((0, -top), words, fill=255, font=font)
    return mask.resize((mask.width * letter_height // mask.height, letter_height), Image.Resampling.BICUBIC)


def screen() -> Grey:
    """Bubbles of words, a bar, and a photograph in one of them."""
    picture = Image.new("L", (1170, 2532), 240)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, 1170, 160), fill=90)
    for index in range(14):
        top = 200 + index * 160
        draw.rounded_rectangle((60 + 120 * (index % 2), top, 1000, top + 140), 30, fill=255 if index % 2 else 110)
        for line in range(3):
            mask = print_of(WORDS[index * 3 :], 28).crop((0, 0, 760, 28))
            draw.bitmap((90 + 120 * (index % 2), top + 14 + line * 40), mask, fill=30 if index % 2 else 250)
    picture.paste(Image.fromarray(smooth(600, 400)), (300, 1900))
    return np.asarray(picture)


def size_of(detail: Detail, psnr_db: int = 31) -> int | None:
    return adapted_pixels(detail, ORIGINAL, floor_pixels=FLOOR, halving_psnr_db=psnr_db)


def test_the_smoother_the_smaller() -> None:
    assert [size_of(detail_of(picture)) for picture in (smooth(), clouds(5), clouds(6))] == [FLOOR] * 3
    finer = [size_of(detail_of(clouds(octaves))) or 0 for octaves in (7, 8, 9)]
    assert FLOOR < finer[0] < finer[1] / 2 < finer[2] / 4


def test_fine_texture_keeps_more_than_a_usual_cap() -> None:
    noise = np.random.default_rng(5).integers(0, 60, (1200, 1600))
    kept = size_of(detail_of((clouds(8) // 2 + noise).astype(np.uint8)))
    assert kept is None or kept > 1280 * 32 * 32


@pytest.mark.parametrize("letter_height", [8, 12, 20, 32, 48, 80])
def test_pages_are_left_alone_at_any_strength(letter_height: int) -> None:
    detail = detail_of(page(letter_height))
    assert detail.text_permille >= TEXT_PERMILLE
    assert size_of(detail, 20) is None


def test_screens_are_left_alone_at_any_strength() -> None:
    assert size_of(detail_of(screen()), 20) is None


@pytest.mark.parametrize("letter_height", [14, 24, 48])
def test_a_few_lines_of_print_in_a_smooth_picture_stay_legible(letter_height: int) -> None:
    picture = Image.fromarray(smooth())
    for line in range(3):
        mask = print_of(WORDS, letter_height).crop((0, 0, 500, letter_height))
        ImageDraw.Draw(picture).bitmap((500, 500 + line * letter_height * 3 // 2), mask, fill=250)
    detail = detail_of(np.asarray(picture))
    assert detail.text_permille < TEXT_PERMILLE
    pixels = size_of(detail) or ORIGINAL
    assert letter_height * (pixels / picture.width / picture.height) ** 0.5 > 10


def test_even_ground_loses_nothing() -> None:
    assert detail_of(np.full((256, 300), 77, np.uint8)) == Detail(76_800, (0, 0, 0), 0)


def test_a_ramp_is_predicted() -> None:
    ramp = np.tile(np.arange(256, dtype=np.uint8), (256, 1))
    assert detail_of(ramp).losses[0] < 256


@pytest.mark.parametrize("shape", [(63, 4000), (4000, 63), (1, 1)])
def test_narrow_pictures_are_not_measured(shape: tuple[int, int]) -> None:
    detail = detail_of(np.zeros(shape, np.uint8))
    assert detail == Detail(shape[0] * shape[1], (), 0)


def test_the_same_numbers_every_time() -> None:
    assert detail_of(clouds(6)) == detail_of(clouds(6))
    pattern = (np.add.outer(np.arange(192) * 5, np.arange(256) * 3) % 251).astype(np.uint8)
    assert detail_of(pattern) == Detail(49_152, (350_550, 503_227), 0)


def encoded(picture: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def test_what_has_been_shrunk_is_left_alone() -> None:
    """Not only by the pure decision: the picture that comes out, measured anew."""
    original = clouds(8)
    for psnr_db in (26, 28, 31, 34):
        pixels = size_of(detail_of(original), psnr_db)
        assert pixels is not None
        scale = (pixels / original.size) ** 0.5
        small = Image.fromarray(original).resize((int(1600 * scale), int(1200 * scale)), Image.Resampling.BICUBIC)
        again = detail_of(np.asarray(small))
        found = adapted_pixels(again, small.width * small.height, floor_pixels=FLOOR, halving_psnr_db=psnr_db)
        assert found is None


@pytest.mark.parametrize(("form", "options"), [("JPEG", {"quality": 92}), ("PNG", {}), ("BMP", {})])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_every_format_and_colour_measures_about_alike(form: str, options: dict[str, object], mode: str) -> None:
    picture = Image.fromarray(clouds(5))
    data = encoded(picture.convert(mode), form, **options)
    grey = brightness(data, look_at(data))
    assert grey.shape == (1200, 1600)
    assert np.abs(grey.astype(int) - np.asarray(picture)).mean() < 3


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_large_pictures_are_measured_small(form: str) -> None:
    data = encoded(Image.fromarray(smooth(2600, 1800)).convert("RGB"), form)
    detail, psnr_db = measure(data, look_at(data), (Size(2600, 1800), Size(325, 225)))
    assert detail.pixels == 1300 * 900
    assert psnr_db[0] == 99.0
    assert 40 < psnr_db[1] < 99


def test_transparency_is_white_and_inks_are_colours() -> None:
    clear = Image.new("RGBA", (80, 70), (0, 0, 0, 0))
    data = encoded(clear, "PNG")
    assert set(brightness(data, look_at(data)).ravel().tolist()) == {255}
    data = encoded(Image.new("CMYK", (80, 70), (0, 0, 0, 0)), "JPEG")
    assert brightness(data, look_at(data)).min() > 250


def test_turned_pictures_are_compared_as_they_stand() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.fromarray(clouds(7, 400, 200)), "JPEG", exif=exif.tobytes())
    probe = look_at(data)
    assert probe.upright == Size(200, 400)
    _, (whole, half) = measure(data, probe, (Size(200, 400), Size(100, 200)))
    assert whole == 99.0
    assert half < 60


def test_a_damaged_file_is_named() -> None:
    data = encoded(Image.fromarray(clouds(4, 300, 200)), "JPEG")
    with pytest.raises(Undecodable):
        measure(data[:2000], Probe(ImageFormat.JPEG, Size(300, 200)), ())
