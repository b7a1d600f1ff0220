"""Both backends through the whole pipeline, for every format and kind of file."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from gateway.errors import Undecodable
from gateway.media.codecs import CodecBackend, Rendered, available_backends, load_backend
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.pipeline import ResizeJob
from gateway.media.codecs.probe import probe_all
from gateway.types import Fidelity, ImageFormat, OutputFormat, Size
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    Pixels,
    chunk,
    corners,
    exif,
    gif,
    gif_frame,
    jpeg,
    mode_of,
    near,
    opened,
    oriented_jpeg,
    plan_for,
    png,
    quarters,
    riff,
    saved,
    vp8x,
    webp,
)
from tests.media.codecs.samples import bitstream as webp_bitstream

GOLDEN = Path(__file__).parents[2] / "golden" / "images"
WHITE = (255, 255, 255)
COLOURS = [RED, GREEN, BLUE, YELLOW]
BACKENDS = available_backends()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> CodecBackend:
    return load_backend(str(request.param))


def render(
    backend: CodecBackend,
    data: bytes,
    target: Size | None = None,
    output: OutputFormat = OutputFormat.AUTO,
    background: tuple[int, int, int] = WHITE,
) -> Rendered:
    probe = probe_all(data)
    rendered = backend.render(data, probe, plan_for(target or probe.upright, output, background))
    found = probe_all(rendered.data)
    assert (found.raster, found.format) == (rendered.size, rendered.format)
    assert (found.orientation, found.has_alpha, found.bits_per_sample, found.complete) == (1, False, 8, True)
    return rendered


def psnr(one: Pixels, two: Pixels) -> float:
    error = float(np.mean((one.astype(np.float64) - two.astype(np.float64)) ** 2))
    return float(10 * np.log10(255**2 / max(error, 1e-9)))


def test_each_orientation_comes_out_upright(backend: CodecBackend) -> None:
    # Where the corners of the stored picture go: EXIF 2.32, figure 17.
    wanted = {
        1: [RED, GREEN, BLUE, YELLOW],
        2: [GREEN, RED, YELLOW, BLUE],
        3: [YELLOW, BLUE, GREEN, RED],
        4: [BLUE, YELLOW, RED, GREEN],
        5: [RED, BLUE, GREEN, YELLOW],
        6: [BLUE, RED, YELLOW, GREEN],
        7: [YELLOW, GREEN, BLUE, RED],
        8: [GREEN, YELLOW, RED, BLUE],
    }
    for orientation, colours in wanted.items():
        rendered = render(backend, oriented_jpeg(orientation, pixels=quarters(128, 64)), output=OutputFormat.PNG)
        assert rendered.size == (Size(64, 128) if orientation >= 5 else Size(128, 64))
        assert near(corners(opened(rendered.data)), colours, 3), orientation


def test_the_target_is_the_upright_one(backend: CodecBackend) -> None:
    rendered = render(backend, oriented_jpeg(6, pixels=quarters(320, 160)), Size(40, 90))
    assert rendered.size == Size(40, 90)
    assert near(corners(opened(rendered.data)), [BLUE, RED, YELLOW, GREEN], 3)


def test_orientation_of_other_formats(backend: CodecBackend) -> None:
    for data in (
        png(after=chunk(b"eXIf", exif(6))),
        riff(vp8x((64, 32), 8), webp_bitstream(webp(lossless=True)), (b"EXIF", exif(6))),
    ):
        rendered = render(backend, data)
        assert rendered.size == Size(32, 64)
        assert corners(opened(rendered.data)) == [BLUE, RED, YELLOW, GREEN]


@pytest.mark.parametrize(
    ("data", "written", "tolerance"),
    [
        (jpeg(), ImageFormat.PNG, 4),
        (jpeg(progressive=True), ImageFormat.PNG, 4),
        (jpeg(mode="CMYK"), ImageFormat.PNG, 6),
        (webp(), ImageFormat.JPEG, 10),
        (webp(lossless=True), ImageFormat.PNG, 0),
        (png(), ImageFormat.PNG, 0),
        (png(quarters().astype(np.uint16) * 257), ImageFormat.PNG, 0),
        (saved(quarters(), "RGB", "BMP"), ImageFormat.PNG, 0),
        (saved(quarters(), "RGB", "TIFF"), ImageFormat.PNG, 0),
    ],
)
def test_every_format_keeps_its_colours(
    backend: CodecBackend, data: bytes, written: ImageFormat, tolerance: int
) -> None:
    rendered = render(backend, data)
    assert rendered.format is written
    assert near(corners(opened(rendered.data)), COLOURS, tolerance)
    assert mode_of(rendered.data) == "RGB"


def test_a_change_that_keeps_the_pixels_is_exact(backend: CodecBackend) -> None:
    noise = np.random.default_rng(11).integers(0, 255, (40, 50, 3), np.uint8)
    opaque = np.dstack((noise, np.full((40, 50), 255, np.uint8)))
    for data in (png(opaque), png(noise.astype(np.uint16) * 256 + 200), webp(noise, lossless=True)):
        assert (opened(render(backend, data).data) == noise).all()


def test_transparency_shows_the_background(backend: CodecBackend) -> None:
    half = np.dstack((quarters(), np.full((32, 64), 255, np.uint8)))
    half[:, 32:, 3] = 0
    frame = gif(gif_frame((0, 0, 32, 32), 0))
    for data in (png(half), webp(half, lossless=True), saved(half, "RGBA", "TIFF"), frame):
        assert corners(opened(render(backend, data).data))[1] == WHITE
        assert corners(opened(render(backend, data, background=(20, 30, 90)).data))[1] == (20, 30, 90)
        assert corners(opened(render(backend, data).data))[0] == RED


def test_hidden_pixels_do_not_bleed_through_a_resize(backend: CodecBackend) -> None:
    logo = np.zeros((200, 400, 4), np.uint8)
    logo[:, :200] = (*RED, 255)
    shown = opened(render(backend, png(logo), Size(80, 40)).data)
    assert corners(shown) == [RED, WHITE, RED, WHITE]
    assert shown[:, :, 0].min() >= 200


def test_half_transparent_pixels_are_mixed(backend: CodecBackend) -> None:
    half = np.dstack((np.zeros((8, 8, 3), np.uint8), np.full((8, 8), 128, np.uint8)))
    assert near([tuple(opened(render(backend, png(half)).data)[4, 4])], [(127, 127, 127)], 1)


def test_grey_stays_grey(backend: CodecBackend) -> None:
    grey = np.arange(256, dtype=np.uint8).reshape(16, 16).repeat(4, axis=0).repeat(4, axis=1)
    seen = np.dstack((grey, np.full((64, 64), 255, np.uint8)))
    for data in (png(grey), png(seen), jpeg(grey, mode="L"), saved(grey, "L", "TIFF"), saved(grey, "L", "BMP")):
        for target in (None, Size(48, 40)):
            assert mode_of(render(backend, data, target).data) == "L"
    assert mode_of(render(backend, png(seen), background=(1, 2, 3)).data) == "RGB"


def test_dark_16_bit_grey_stays_dark(backend: CodecBackend) -> None:
    dark = np.full((8, 16), 512, np.uint16)
    assert opened(render(backend, png(dark)).data).max() == 2


@pytest.mark.parametrize("size", [(1, 1), (22, 3), (26, 28), (332, 27)])
def test_tiny_pictures_are_enlarged(backend: CodecBackend, size: tuple[int, int]) -> None:
    plain = np.full((size[1], size[0], 3), 77, np.uint8)
    target = Size(max(28, size[0]), max(28, size[1]))
    rendered = render(backend, png(plain), target)
    assert rendered.size == target
    assert (opened(rendered.data) == 77).all()


@pytest.mark.parametrize("target", [(13, 200), (200, 13), (1, 1), (97, 61), (300, 300)])
def test_any_shape_becomes_any_other(backend: CodecBackend, target: tuple[int, int]) -> None:
    assert render(backend, png(quarters(120, 90)), Size(*target)).size == Size(*target)


def test_fine_stripes_average_instead_of_aliasing(backend: CodecBackend) -> None:
    stripes = np.zeros((400, 400), np.uint8)
    stripes[:, ::4] = stripes[:, 1::4] = 255
    shown = opened(render(backend, png(stripes), Size(100, 100)).data)[10:-10, 10:-10]
    assert 115 <= shown.min() <= shown.max() <= 140


@pytest.mark.parametrize(("name", "reference"), [("scene.jpg", "scene"), ("screen.png", "screen")])
def test_the_picture_is_what_an_engine_would_have_seen(backend: CodecBackend, name: str, reference: str) -> None:
    expected = opened((GOLDEN / f"{reference}.expected.png").read_bytes())
    target = Size(expected.shape[1], expected.shape[0])
    data = (GOLDEN / name).read_bytes()
    assert psnr(opened(render(backend, data, target, OutputFormat.PNG).data), expected) >= 45
    # What the encoding costs is bounded too.
    assert psnr(opened(render(backend, data, target).data), expected) >= 35


@pytest.mark.parametrize(
    ("fidelity", "target", "floor_db"),
    [
        (Fidelity.EXACT, Size(480, 360), 50),
        (Fidelity.EXACT, Size(400, 300), 45),
        (Fidelity.EXACT, Size(160, 120), 45),
        (Fidelity.FAST, Size(536, 400), 40),
        (Fidelity.FAST, Size(200, 150), 40),
    ],
)
def test_what_is_decoded_small_keeps_what_its_class_promises(
    backend: CodecBackend, fidelity: Fidelity, target: Size, floor_db: float
) -> None:
    """Text at the very margin, where shrinking while decoding loses most."""
    page = Image.new("RGB", (536, 400), (250, 248, 240))
    # The font of dots, softened to what FreeType draws: a pillow-simd that was built without FreeType has no other.
    font = ImageFont.load_default_imagefont()
    for row in range(0, 400, 14):
        words = "The quick brown fox jumps over 1,234,567 lazy dogs. " * 2
        ImageDraw.Draw(page).text((4, row), words, (40, 30, 90), font=font)
    page = page.filter(ImageFilter.GaussianBlur(0.4))
    page = page.resize((1_608, 1_200), Image.Resampling.BICUBIC)
    file = jpeg(np.asarray(page), quality=90)
    full = png(opened(file))
    plan = replace(plan_for(target, OutputFormat.PNG), fidelity=fidelity)
    ours, reference = (opened(backend.render(data, probe_all(data), plan).data) for data in (file, full))
    # libvips shrinks by a box before its kernel, which a finer or coarser start shifts a little.
    assert psnr(ours, reference) >= floor_db - (4 if backend.name == "vips" else 0)


def test_incomplete_files_are_refused_before_decoding(backend: CodecBackend) -> None:
    noise = np.random.default_rng(12).integers(0, 255, (64, 64, 3), np.uint8)
    for data in (jpeg(noise), jpeg(noise, progressive=True), png(noise), webp(noise), saved(noise, "RGB", "BMP")):
        cut = data[: len(data) * 3 // 4]
        probe = probe_all(cut)
        with pytest.raises(Undecodable, match="too early"):
            backend.render(cut, probe, plan_for(probe.upright))


def test_the_same_plan_makes_the_same_bytes_in_another_process() -> None:
    """Workers and replicas must agree: engines cache by bytes."""
    script = (
        "import sys; from pathlib import Path; from hashlib import sha256\n"
        "from tests.media.codecs.samples import plan_for\n"
        "from gateway.media.codecs import load_backend; from gateway.media.codecs.probe import probe_all\n"
        "from gateway.types import Size\n"
        "backend = load_backend(sys.argv[1]); data = Path(sys.argv[2]).read_bytes(); probe = probe_all(data)\n"
        "print(sha256(backend.render(data, probe, plan_for(Size(224, 288))).data).hexdigest(), backend.fingerprint)"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", script, BACKENDS[0], str(GOLDEN / "scene.jpg")]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout for _ in range(2)
    ]
    assert said[0] == said[1]
    assert load_backend(BACKENDS[0]).fingerprint in said[0]


def test_fingerprints_name_backend_libraries_and_settings() -> None:
    fingerprints = {name: load_backend(name).fingerprint for name in BACKENDS}
    for name, fingerprint in fingerprints.items():
        assert fingerprint.startswith(f"{name}-r")
        for library in ("pil", "vips", "simplejpeg", "imagecodecs", "isal"):
            assert library in fingerprint
        assert load_backend(name).fingerprint == fingerprint
    assert len(set(fingerprints.values())) == len(fingerprints)


def job(width: int, height: int, target: Size, *, vertical_first: bool = False) -> ResizeJob:
    return ResizeJob(Raster(np.zeros((height, width, 3), np.uint8)), target, WHITE, vertical_first)


def test_passes_run_horizontally_first_as_seen_upright() -> None:
    assert job(100, 80, Size(50, 40)).passes == (Size(50, 80), Size(50, 40))
    assert job(100, 80, Size(50, 40), vertical_first=True).passes == (Size(100, 40), Size(50, 40))
    assert job(100, 80, Size(100, 40)).passes == (Size(100, 40),)
    assert job(100, 80, Size(50, 80), vertical_first=True).passes == (Size(50, 80),)
    assert job(100, 80, Size(100, 80)).passes == ()
