from __future__ import annotations

import io

import pytest
from PIL import Image

from gateway.media.codecs.probe import probe_all
from gateway.media.codecs.probe.profile import embedded_profile
from gateway.types import ImageFormat
from tests.media.codecs.samples import (
    adobe_rgb,
    avif,
    bitstream,
    box,
    chunk,
    display_p3,
    gif,
    gif_frame,
    jpeg,
    jpeg2000,
    png,
    profile_chunk,
    profile_segments,
    quarters,
    riff,
    segment,
    srgb,
    vp8x,
    webp,
    with_property,
    with_segments,
)


def tiff(profile: bytes) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(quarters()).save(buffer, "TIFF", tiffinfo={34675: profile})
    return buffer.getvalue()


def carriers(profile: bytes) -> list[bytes]:
    """The same profile in every container that may carry one."""
    jp2 = jpeg2000()
    at = jp2.index(b"colr") - 4
    coloured = jp2[:at] + box(b"colr", b"\2\0\0" + profile) + jp2[at + 15 :]
    header = coloured.index(b"jp2h") - 4
    grown = int.from_bytes(coloured[header : header + 4], "big") + len(profile) - 4
    return [
        with_segments(jpeg(), *profile_segments(profile)),
        png(before=profile_chunk(profile)),
        riff(vp8x((64, 32), 0x20), (b"ICCP", profile), bitstream(webp())),
        tiff(profile),
        with_property(avif(), b"colr", b"prof" + profile),
        coloured[:header] + grown.to_bytes(4, "big") + coloured[header + 4 :],
    ]


@pytest.mark.parametrize("index", range(6))
def test_a_profile_is_found_wherever_a_format_keeps_it(index: int) -> None:
    for profile, foreign in ((display_p3(), True), (adobe_rgb(), True), (srgb(), False)):
        file = carriers(profile)[index]
        found = probe_all(file)
        assert found.foreign_profile is foreign, found.format
        assert embedded_profile(file, found.format) == profile


def test_pieces_of_a_jpegs_profile_are_put_in_order() -> None:
    profile = adobe_rgb()
    pieces = profile_segments(profile, piece_bytes=200)
    assert embedded_profile(with_segments(jpeg(), *reversed(pieces)), ImageFormat.JPEG) == profile


def test_a_second_picture_or_gain_map_is_no_profile() -> None:
    file = with_segments(jpeg(), segment(0xE2, b"MPF\0" + bytes(60)))
    assert not probe_all(file + jpeg()).foreign_profile
    assert embedded_profile(file, ImageFormat.JPEG) is None


@pytest.mark.parametrize("index", range(6))
def test_a_broken_profile_fails_no_picture(index: int) -> None:
    for broken in (b"\xff" * 150, display_p3()[:90], display_p3()[:140]):
        assert not probe_all(carriers(broken)[index]).foreign_profile


def test_a_broken_chunk_is_no_profile() -> None:
    for body in (b"no zero", b"name\0\0not deflated"):
        assert embedded_profile(png(before=chunk(b"iCCP", body)), ImageFormat.PNG) is None


def test_cut_files_and_other_formats_have_none() -> None:
    assert embedded_profile(jpeg()[:30], ImageFormat.JPEG) is None
    assert embedded_profile(webp()[:10], ImageFormat.WEBP) is None
    assert embedded_profile(tiff(srgb())[:7], ImageFormat.TIFF) is None
    assert embedded_profile(gif(gif_frame((0, 0, 64, 32), 1)), ImageFormat.GIF) is None
