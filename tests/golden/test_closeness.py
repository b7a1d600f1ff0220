"""Before encoding, what is delivered is as near to a full decode and one bicubic resize as its class promises.

The reference is made by other decoders than ours where there are others, resized by Pillow, horizontally first. Floors
are a little below what is measured here; the models' own processors are asked in tests/engine/test_pixels.py.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import imagecodecs
import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageOps

from benchmarks.drawing import draw_chat, draw_dashboard, draw_page, draw_photo_like
from gateway.media.codecs import CodecBackend, available_backends, load_backend
from gateway.media.codecs.probe import probe_all
from gateway.types import Fidelity, OutputFormat, Size
from tests.golden.closeness import EQUAL_DB, Pixels, luma, psnr_db, ssim
from tests.golden.fingerprints import files, plans
from tests.media.codecs.samples import jpeg, plan_for

WHITE = (255, 255, 255)
BACKENDS = available_backends()
# Backend -> decibels and SSIM of a full decode; pillow-simd's resizer is the reference's own where PIL is pillow-simd.
FULL = {"pillow-simd": (60.0, 0.999), "vips": (50.0, 0.997)}
# Other decoders may round otherwise by a level, and inks have no one way to colours.
LOOSER = {"photo-inks.jpg": (40.0, 0.99)}

DECODERS: dict[str, Callable[[bytes], Pixels]] = {
    ".webp": imagecodecs.webp_decode,
    ".avif": imagecodecs.avif_decode,
    ".jp2": imagecodecs.jpeg2k_decode,
}


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> CodecBackend:
    return load_backend(str(request.param))


def opened(path: Path) -> Image.Image:
    """Upright RGB on white."""
    data = path.read_bytes()
    if path.suffix == ".heic":
        return Image.fromarray(np.asarray(pillow_heif.open_heif(data))[:, :, :3].copy())
    if path.suffix in DECODERS:
        return Image.fromarray(np.ascontiguousarray(DECODERS[path.suffix](data)[:, :, :3]))
    if "16-bit" in path.name:
        return Image.fromarray((imagecodecs.png_decode(data) >> 8).astype(np.uint8))
    with Image.open(path) as file:
        upright = ImageOps.exif_transpose(file)
    if upright.mode in ("P", "RGBA") and (upright.mode == "RGBA" or "transparency" in upright.info):
        upright = upright.convert("RGBA")
        ground = Image.new("RGB", upright.size, WHITE)
        ground.paste(upright, mask=upright.getchannel("A"))
        return ground
    return upright.convert("RGB")


def resized(picture: Image.Image, target: Size) -> Pixels:
    middle = picture.resize((target.width, picture.height), Image.Resampling.BICUBIC)
    return np.asarray(middle.resize((target.width, target.height), Image.Resampling.BICUBIC))


def shown(file: bytes) -> Pixels:
    with Image.open(io.BytesIO(file)) as image:
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_every_format_under_every_plan_that_changes_its_size(backend: CodecBackend, path: Path) -> None:
    data = path.read_bytes()
    probe = probe_all(data)
    floor_db, floor_ssim = LOOSER.get(path.name, FULL[backend.name])
    for name in ("shrunk", "small", "grown"):
        plan = replace(plans(probe.upright)[name], output=OutputFormat.PNG)
        ours, reference = shown(backend.render(data, probe, plan).data), resized(opened(path), plan.target)
        assert psnr_db(ours, reference) >= floor_db, name
        assert ssim(ours, reference) >= floor_ssim, name


# What a JPEG keeps that is decoded at a half or a quarter, with as little left as its class allows: decibels and SSIM.
# The page's letters are six pixels high, with strokes of one, and gone at the target.
EXACT_FLOORS = {"photo": (52, 0.998), "chat": (45, 0.999), "dashboard": (44, 0.998), "page": (44, 0.992)}
FAST_FLOORS = {"photo": (52, 0.998), "chat": (42, 0.998), "dashboard": (40, 0.995), "page": (39, 0.986)}
DRAWN: dict[str, Callable[[], Image.Image]] = {
    "photo": lambda: draw_photo_like(1200, 900, seed=6),
    "chat": lambda: draw_chat(1200, 900),
    "dashboard": lambda: draw_dashboard(1200, 900),
    "page": lambda: draw_page(1200, 900),
}
MARGINS = [(Fidelity.EXACT, 4), (Fidelity.EXACT, 10), (Fidelity.FAST, 3), (Fidelity.FAST, 8)]


@pytest.fixture(scope="module", params=DRAWN)
def drawn(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """A kind of picture and a JPEG of it."""
    kind = str(request.param)
    return kind, jpeg(np.asarray(DRAWN[kind]().convert("RGB")), quality=90)


def test_decoding_small_keeps_what_its_class_promises(backend: CodecBackend, drawn: tuple[str, bytes]) -> None:
    kind, data = drawn
    full = Image.fromarray(shown(data))
    for fidelity, times in MARGINS:
        plan = replace(plan_for(Size(1200 // times, 900 // times), OutputFormat.PNG), fidelity=fidelity)
        ours, reference = shown(backend.render(data, probe_all(data), plan).data), resized(full, plan.target)
        floor_db, floor_ssim = (EXACT_FLOORS if fidelity is Fidelity.EXACT else FAST_FLOORS)[kind]
        assert floor_db <= psnr_db(ours, reference) < EQUAL_DB, (fidelity, times)
        assert ssim(ours, reference) >= floor_ssim, (fidelity, times)


def test_the_arithmetic() -> None:
    """Known answers: a shift by a constant, luma of pure colours, and one of the formula's own."""
    grey = np.full((20, 30), 100, np.uint8)
    assert psnr_db(grey, grey) == EQUAL_DB
    assert psnr_db(grey, grey + np.uint8(10)) == pytest.approx(20 * np.log10(25.5))
    assert ssim(grey, grey) == 1.0
    # Without variance the second factor is 1: (2 * 100 * 110 + C1) / (100^2 + 110^2 + C1), C1 = 6.5025.
    assert ssim(grey, grey + np.uint8(10)) == pytest.approx((22_000 + 6.5025) / (22_100 + 6.5025))
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3), np.uint8)
    assert ssim(noise, np.random.default_rng(2).integers(0, 256, (40, 40, 3), np.uint8)) < 0.1
    assert ssim(noise, noise[:, ::-1]) == pytest.approx(ssim(noise[:, ::-1], noise))
    assert luma(np.array([[[255, 0, 0], [0, 255, 0], [255, 255, 255]]], np.uint8))[0] == pytest.approx(
        [76.245, 149.685, 255]
    )
