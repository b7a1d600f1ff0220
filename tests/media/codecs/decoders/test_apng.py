from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.apng import decode_apng_frame
from gateway.media.codecs.probe import probe_all
from tests.media.codecs.samples import BLUE, GREEN, RED, Pixels, chunk, scanlines

SIZE = (8, 4)


def flat(colour: tuple[int, ...], size: tuple[int, int] = SIZE) -> Pixels:
    return np.full((size[1], size[0], len(colour)), colour, np.uint8)


def control(
    number: int, size: tuple[int, int] = SIZE, at: tuple[int, int] = (0, 0), dispose: int = 0, blend: int = 0
) -> bytes:
    return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, *size, *at, 1, 10, dispose, blend))


def data(number: int, pixels: Pixels) -> bytes:
    return chunk(b"fdAT", struct.pack(">I", number) + zlib.compress(scanlines(pixels)))


def apng(
    first: Pixels, *rest: bytes, dispose: int = 0, colour_type: int = 6, frames: int = 2, before: bytes = b""
) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *SIZE, 8, colour_type, 0, 0, 0))
    start = chunk(b"acTL", struct.pack(">II", frames, 0)) + before + control(0, dispose=dispose)
    body = chunk(b"IDAT", zlib.compress(scanlines(first)))
    return b"\x89PNG\r\n\x1a\n" + header + start + body + b"".join(rest) + chunk(b"IEND", b"")


def pixel(file: bytes, frame: int, x: int = 0, y: int = 0) -> tuple[int, ...]:
    samples = decode_apng_frame(file, probe_all(file), frame).samples
    return tuple(int(value) for value in samples[y, x])


CORNER = flat((*GREEN, 255), (2, 2))


def test_frames_are_put_where_they_belong() -> None:
    file = apng(flat((*RED, 255)), control(1, (2, 2), (4, 1)), data(2, CORNER))
    assert probe_all(file).frames == 2
    assert pixel(file, 0) == (*RED, 255)
    assert (pixel(file, 1), pixel(file, 1, 4, 1), pixel(file, 1, 6, 3)) == ((*RED, 255), (*GREEN, 255), (*RED, 255))


@pytest.mark.parametrize(("dispose", "left"), [(0, (*GREEN, 255)), (1, (0, 0, 0, 0)), (2, (*RED, 255))])
def test_what_a_frame_leaves_behind(dispose: int, left: tuple[int, ...]) -> None:
    file = apng(
        flat((*RED, 255)),
        control(1, (2, 2), (0, 0), dispose=dispose),
        data(2, CORNER),
        control(3, (2, 2), (4, 0)),
        data(4, CORNER),
        frames=3,
    )
    assert pixel(file, 2) == left


def test_a_first_frame_that_goes_back_to_nothing() -> None:
    file = apng(flat((*RED, 255)), control(1, (2, 2), (4, 0)), data(2, CORNER), dispose=2)
    assert pixel(file, 1) == (0, 0, 0, 0)


@pytest.mark.parametrize(("blend", "expected"), [(0, (*BLUE, 128)), (1, (130, 45, 115, 255))])
def test_blending(blend: int, expected: tuple[int, ...]) -> None:
    half = flat((*BLUE, 128), (2, 2))
    file = apng(flat((*RED, 255)), control(1, (2, 2), blend=blend), data(2, half))
    found = pixel(file, 1)
    assert all(abs(a - b) <= 1 for a, b in zip(found, expected, strict=True))


def test_blending_over_nothing_shows_the_frame() -> None:
    half = flat((*BLUE, 128), (2, 2))
    file = apng(flat((0, 0, 0, 0)), control(1, (2, 2), blend=1), data(2, half))
    assert pixel(file, 1) == (*BLUE, 128)
    nothing = apng(flat((0, 0, 0, 0)), control(1, (2, 2), blend=1), data(2, flat((9, 9, 9, 0), (2, 2))))
    assert pixel(nothing, 1) == (0, 0, 0, 0)


def test_palettes_and_grey() -> None:
    palette = chunk(b"PLTE", bytes((*RED, *BLUE))) + chunk(b"tRNS", b"\xff\x80")
    file = apng(flat((0,)), control(1), data(2, flat((1,))), colour_type=3, before=palette)
    assert (pixel(file, 0), pixel(file, 1)) == ((*RED, 255), (*BLUE, 128))
    grey = apng(flat((5,)), control(1), data(2, flat((77,))), colour_type=0)
    assert pixel(grey, 1) == (77, 77, 77, 255)


@pytest.mark.parametrize(
    "rest",
    [
        (control(1, (9, 4)), data(2, flat((*RED, 255), (9, 4)))),
        (control(1, (2, 2), (7, 0)), data(2, CORNER)),
        (control(1, (0, 2)), data(2, CORNER)),
        (control(1), data(2, CORNER)),
        (chunk(b"fcTL", bytes(5)),),
        (),
    ],
    ids=["wider", "outside", "empty", "short", "broken", "missing"],
)
def test_frames_that_lie_are_undecodable(rest: tuple[bytes, ...]) -> None:
    file = apng(flat((*RED, 255)), *rest)
    with pytest.raises(Undecodable):
        decode_apng_frame(file, probe_all(file), 1)
