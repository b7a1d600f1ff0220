from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders import look_at
from gateway.media.codecs.decoders.png import decode_png, holds_together
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.decoders.vips import decode_page
from gateway.media.codecs.probe import probe_all
from tests.media.codecs.samples import Pixels, adam7, chunk, packed_png, png, quarters

NOISE = np.random.default_rng(21).integers(0, 255, (90, 70, 4), np.uint8)


def decoded(data: bytes) -> Raster:
    return decode_png(data, probe_all(data))


@given(arrays.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4]))))
def test_plain_files_come_out_as_they_are(pixels: Pixels) -> None:
    bands = pixels.shape[2]
    raster = decoded(png(pixels))
    assert (raster.samples == pixels).all()
    assert (raster.alpha, raster.grey) == (bands == 4, bands == 1)


@pytest.mark.parametrize(
    "data",
    [
        png(NOISE),
        png(NOISE[:, :, :3]),
        png(NOISE[:, :, 0]),
        png(NOISE[:, :, :2]),
        png(NOISE[:, :, :3].astype(np.uint16) * 257),
        png(quarters(), before=chunk(b"tRNS", b"\0\xc8\0\x1e\0\x1e")),
        png(NOISE[:, :, 0], before=chunk(b"tRNS", b"\0\x07")),
        packed_png(np.arange(64, dtype=np.uint8).reshape(8, 8) % 16, 4, 3, chunk(b"PLTE", bytes(range(48)))),
        packed_png(np.arange(64, dtype=np.uint8).reshape(8, 8) % 2, 1, 3, chunk(b"PLTE", bytes(range(6)))),
        packed_png(
            np.arange(64, dtype=np.uint8).reshape(8, 8) % 4, 2, 3, chunk(b"PLTE", bytes(12)) + chunk(b"tRNS", b"7")
        ),
        adam7(quarters(40, 24)),
        png(quarters(), before=chunk(b"gAMA", b"\0\0\xb1\x8f")),
    ],
)
def test_both_decoders_see_the_same_picture(data: bytes) -> None:
    one, two = decoded(data), decode_page(data, probe_all(data))
    bands = 4 if one.alpha else min(one.samples.shape[2], two.samples.shape[2], 3)
    assert (one.samples[:, :, :bands] == two.samples[:, :, :bands]).all()
    assert (one.alpha, one.grey) == (two.alpha, two.grey)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_cut_data_is_never_a_picture(share: float) -> None:
    data = png(NOISE[:, :, :3])
    probe = probe_all(data)
    with pytest.raises(Undecodable):
        decode_png(data[: int(len(data) * share)], probe)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_palette_picture_is_undecodable(share: float) -> None:
    values = np.random.default_rng(22).integers(0, 16, (64, 64), np.uint8)
    data = packed_png(values, 4, 3, chunk(b"PLTE", bytes(range(48))))
    probe = probe_all(data)
    with pytest.raises(Undecodable):
        decode_png(data[: int(len(data) * share)], probe)


def test_damaged_data_is_never_a_picture() -> None:
    data = bytearray(png(NOISE[:, :, :3]))
    data[len(data) // 2] ^= 255
    with pytest.raises(Undecodable):
        decoded(bytes(data))


@pytest.mark.parametrize(
    "data",
    [
        png(NOISE),
        png(NOISE[:, :, :3], before=chunk(b"tEXt", b"a\0b")[:-4] + b"\0\0\0\0"),  # a decoder skips it
        packed_png(np.arange(64, dtype=np.uint8).reshape(8, 8) % 2, 1, 3, chunk(b"PLTE", bytes(range(6)))),
        png(NOISE) + b"what trails",
    ],
)
def test_a_whole_file_holds_together(data: bytes) -> None:
    assert holds_together(data)
    assert look_at(data).complete


@given(st.integers(0, len(png(NOISE)) - 1), st.integers(1, 255))
def test_a_byte_that_changed_is_noticed_wherever_it_is(at: int, by: int) -> None:
    data = bytearray(png(NOISE))
    data[at] ^= by
    try:
        assert not look_at(bytes(data)).complete
    except (Undecodable, UnsupportedFormat):
        return


def test_a_palette_that_is_missing_is_noticed() -> None:
    assert not look_at(packed_png(np.zeros((8, 8), np.uint8), 1, 3, b"")).complete


def test_an_end_with_a_length_of_its_own_is_noticed() -> None:
    assert not holds_together(png(NOISE)[:-12] + b"\0\0\1\0IEND\0\0\0\0")


def test_a_header_that_changed_its_mind_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        decode_png(png(NOISE), probe_all(png(quarters())))


def test_too_little_memory_is_an_error_and_no_crash() -> None:
    """In a process of its own, since the limit is its."""
    script = (
        "import resource, sys; from tests.media.codecs.decoders.test_png import refused_for_memory\n"
        "sys.exit(0 if refused_for_memory() else 1)"
    )
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=root)


def refused_for_memory() -> bool:
    data = png(np.zeros((4_000, 4_000, 3), np.uint8))
    probe = probe_all(data)
    status = Path("/proc/self/status").read_text()
    (used,) = (int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + 20_000_000, used + 20_000_000))
    try:
        decode_png(data, probe)
    except MemoryError:
        return True
    return False
