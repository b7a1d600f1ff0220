from __future__ import annotations

import random
import zlib

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutate import mutate

files = st.binary(min_size=1, max_size=400)


@given(files, st.lists(files, min_size=1, max_size=3), st.integers(0, 1 << 32))
def test_the_same_number_makes_the_same_damage(data: bytes, others: list[bytes], seed: int) -> None:
    damaged = mutate(data, others, random.Random(seed))
    assert damaged == mutate(data, others, random.Random(seed))
    assert len(damaged) <= len(data) + 6 * 512


def test_many_pngs_get_checksums_that_fit() -> None:
    head = b"\x89PNG\r\n\x1a\n"
    body = b"IHDR" + bytes(13)
    png = head + (13).to_bytes(4, "big") + body + bytes(4)
    fitting = 0
    for seed in range(400):
        damaged = mutate(png, [png], random.Random(seed))
        whole = len(damaged) == len(png) and damaged.startswith(head + (13).to_bytes(4, "big"))
        fitting += whole and zlib.crc32(damaged[12:29]).to_bytes(4, "big") == damaged[29:33]
    assert fitting > 25, "none would fit by itself"


def test_no_file_is_left_as_it_was_for_long() -> None:
    data = bytes(range(256)) * 4
    assert sum(mutate(data, [data], random.Random(seed)) == data for seed in range(200)) < 10
