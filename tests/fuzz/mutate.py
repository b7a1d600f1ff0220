"""Damage, dealt out by a seeded generator: the same number makes the same file on every machine. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from zlib import crc32

# Where readers of sizes, counts and offsets tend to stumble.
_EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
# Half of all damage is done where headers are.
_HEAD_BYTES = 160
_MAX_STEPS = 6
_MAX_GROWTH_BYTES = 512


def mutate(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """``data`` after one to six acts of damage, mostly few; ``others`` are files to borrow from.

    Half of the PNGs get checksums that fit again, so that their damage passes the first wall.
    """
    file = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, _MAX_STEPS))):
        if not file:
            break
        rng.choice(_ACTS)(file, others, rng)
    if rng.random() < 0.5 and file.startswith(b"\x89PNG\r\n\x1a\n"):
        _mend_png(file)
    return bytes(file)


def _mend_png(file: bytearray) -> None:
    at = 8
    while at + 12 <= len(file):
        end = at + 8 + int.from_bytes(file[at : at + 4], "big")
        if end + 4 > len(file):
            return
        file[end : end + 4] = crc32(file[at + 4 : end]).to_bytes(4, "big")
        at = end + 4


def _place(file: bytearray, rng: random.Random) -> int:
    if rng.random() < 0.5:
        return rng.randrange(min(len(file), _HEAD_BYTES))
    return rng.randrange(len(file))


def _flip_bit(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    file[_place(file, rng)] ^= 1 << rng.randrange(8)


def _set_byte(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    file[_place(file, rng)] = rng.randrange(256)


def _set_word(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    width, at = rng.choice((1, 2, 4)), _place(file, rng)
    value = rng.choice(_EDGES) & ((1 << 8 * width) - 1)
    file[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))


def _add_to_byte(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    at = _place(file, rng)
    file[at] = (file[at] + rng.choice((-1, 1, 16, -16))) % 256


def _cut(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    del file[_place(file, rng) :]


def _remove(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    at = _place(file, rng)
    del file[at : at + rng.choice((1, 2, 4, 13, 64))]


def _repeat(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    at = _place(file, rng)
    part = file[at : at + rng.randint(1, 64)]
    file[at:at] = (part * rng.choice((1, 2, 20)))[:_MAX_GROWTH_BYTES]


def _blank(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    at = _place(file, rng)
    length = min(rng.randint(1, 64), len(file) - at)
    file[at : at + length] = bytes((rng.choice((0, 0xFF)),)) * length


def _insert(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    at = _place(file, rng)
    file[at:at] = rng.randbytes(rng.randint(1, 16))


def _borrow(file: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    """A piece of another file over or into this one: chunks where they do not belong."""
    other = rng.choice(others)
    start = rng.randrange(len(other))
    piece = other[start : start + rng.randint(1, 128)]
    at = _place(file, rng)
    file[at : at + rng.choice((0, len(piece)))] = piece


_Act = Callable[[bytearray, Sequence[bytes], random.Random], None]
_ACTS: tuple[_Act, ...] = (
    _flip_bit, _flip_bit, _set_byte, _set_byte, _set_word, _set_word, _set_word, _add_to_byte, _cut, _remove, _repeat,
    _blank, _insert, _borrow,
)  # fmt: skip
