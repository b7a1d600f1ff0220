from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders import decode, look_at
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from gateway.types import ImageFormat, Probe, Size
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    Pixels,
    avif,
    bitstream,
    corners,
    display_p3,
    gif,
    gif_frame,
    heic,
    jpeg,
    jpeg2000,
    near,
    pdf,
    plan_for,
    png,
    profile_chunk,
    profile_segments,
    quarters,
    riff,
    saved,
    still,
    vp8x,
    webp,
    with_segments,
)

FULL = (0, 0, 64, 32)
NOISE = np.random.default_rng(4).integers(0, 255, (64, 64, 3), np.uint8)


def decoded(data: bytes, frame: int = 0, *, to_srgb: bool = False, salvage: bool = False) -> Raster:
    probe = probe_all(data)
    plan = replace(still(data), frame=frame, to_srgb=to_srgb, salvage=salvage)
    return decode(data, probe, probe.raster, plan)


def test_what_has_no_decoder_is_refused_by_name() -> None:
    probe = Probe(ImageFormat.SVG, Size(4, 4))
    with pytest.raises(UnsupportedFormat, match="SVG"):
        decode(b"<svg>", probe, probe.raster, plan_for(Size(4, 4)))


def test_looking_at_a_file_reads_its_header() -> None:
    assert look_at(jpeg()).raster == Size(64, 32)
    assert look_at(png(), documents=True).format is ImageFormat.PNG


SALVAGEABLE = {
    "jpeg": jpeg(NOISE),
    "png": png(NOISE),
    "gif": gif(gif_frame(FULL, 1)),
    "bmp": saved(NOISE, "RGB", "BMP"),
    "tiff": saved(NOISE, "RGB", "TIFF"),
}


@pytest.mark.parametrize("kind", SALVAGEABLE)
def test_a_cut_file_is_refused_or_salvaged_as_asked(kind: str) -> None:
    whole = SALVAGEABLE[kind]
    cut = whole[: len(whole) * 2 // 3]
    assert not probe_all(cut).complete
    with pytest.raises(Undecodable, match="too early"):
        decoded(cut)
    once, twice = decoded(cut, salvage=True), decoded(cut, salvage=True)
    assert once.size == probe_all(cut).raster
    assert (once.samples == twice.samples).all()
    assert once.samples.max() > 0


@pytest.mark.parametrize("make", [webp, avif, heic, jpeg2000])
def test_of_other_cut_files_nothing_can_be_salvaged(make: Callable[[Pixels], bytes]) -> None:
    data = make(NOISE)
    cut = data[: len(data) // 2]
    with pytest.raises(Undecodable):
        decoded(cut, salvage=True)


@pytest.mark.parametrize("frame", [0, 1, 2])
def test_frames_of_a_gif_are_composed(frame: int) -> None:
    file = gif(gif_frame(FULL, 0), gif_frame((0, 0, 32, 32), 1), gif_frame((32, 0, 32, 16), 2))
    expected = [[RED] * 4, [GREEN, RED, GREEN, RED], [GREEN, BLUE, GREEN, RED]][frame]
    assert [colour[:3] for colour in corners(decoded(file, frame).samples)] == expected


def animated_webp(*levels: int) -> bytes:
    """Frames of one grey each."""
    frames = []
    for level in levels:
        name, data = bitstream(webp(np.full((32, 64, 3), level, np.uint8), lossless=True))
        place = bytes(6) + (63).to_bytes(3, "little") + (31).to_bytes(3, "little") + (100).to_bytes(3, "little") + b"\0"
        frames.append((b"ANMF", place + name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)))
    return riff(vp8x((64, 32), 0x02), (b"ANIM", bytes(6)), *frames)


@pytest.mark.parametrize(("frame", "level"), [(0, 200), (1, 100), (2, 50)])
def test_frames_of_a_webp(frame: int, level: int) -> None:
    shown = decoded(animated_webp(200, 100, 50), frame).samples
    assert corners(shown[:, :, :3]) == [(level,) * 3] * 4


def test_pages_of_a_tiff_have_their_own_size_and_depth() -> None:
    buffer = io.BytesIO()
    pages = [Image.fromarray(quarters()), Image.fromarray(quarters(20, 10)).convert("L")]
    pages[0].save(buffer, "TIFF", save_all=True, append_images=pages[1:])
    data = buffer.getvalue()
    first = probe_all(data)
    assert [page.raster for page in first.pages] == [Size(64, 32), Size(20, 10)]
    second = replace(first, raster=Size(20, 10))
    raster = decode(data, second, second.raster, replace(plan_for(Size(20, 10)), frame=1))
    assert (raster.size, raster.grey) == (Size(20, 10), True)


def test_a_page_of_a_pdf_is_rendered_in_the_plans_size() -> None:
    probe = look_at(pdf(), documents=True)
    assert decode(pdf(), probe, Size(100, 50), plan_for(Size(50, 25))).size == Size(50, 25)


def test_an_icon_and_other_formats_are_decoded() -> None:
    buffer = io.BytesIO()
    Image.fromarray(quarters()).save(buffer, "ICO", sizes=[(64, 32)])
    for file in (buffer.getvalue(), avif(), heic(), jpeg2000(), saved(quarters(), "RGB", "BMP")):
        shown = [colour[:3] for colour in corners(decoded(file).samples)]
        assert near(shown, [RED, GREEN, BLUE, YELLOW], 4)


def test_a_profile_is_applied_only_where_asked() -> None:
    for file in (with_segments(jpeg(), *profile_segments(display_p3())), png(before=profile_chunk(display_p3()))):
        assert near([c[:3] for c in corners(decoded(file).samples)], [RED, GREEN, BLUE, YELLOW], 4)
        red = corners(decoded(file, to_srgb=True).samples)[0]
        assert red[0] > 235, "Display P3's red is redder than sRGB's"
