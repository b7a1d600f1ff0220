"""A table from 64-bit keys to a few bits, and where asked a 64-bit word, in flat arrays: 9 or 17 bytes a place.

A dictionary of such numbers takes over 120 bytes an entry, this 14 to 52: open addressing with linear probing, a third
to two thirds full; removal closes the gap (Knuth, The Art of Computer Programming 3, 6.4, algorithm R).

One thread writes. Others may look up at any time without a lock: the arrays of a grown table replace the old ones in
one step, and during a removal a key that is just being moved may be missed once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

# 2^64 over the golden ratio: spreads keys that are no good hashes (Fibonacci hashing, the same book).
_SPREAD, _MASK_64 = 0x9E3779B97F4A7C15, (1 << 64) - 1
_LEAST_PLACES = 64


class _Places:
    """Arrays of one size, a power of two. A place is free where its bits are 0."""

    __slots__ = ("bits", "keys", "mask", "shift", "words")

    def __init__(self, places: int, *, words: bool) -> None:
        self.keys = array("Q", bytes(8 * places))
        self.words = array("Q", bytes(8 * places if words else 0))
        self.bits = bytearray(places)
        self.mask = places - 1
        self.shift = 64 - places.bit_length() + 1

    def find(self, key: int) -> int:
        """The place of ``key``, or the free one where it would go."""
        keys, bits, mask = self.keys, self.bits, self.mask
        at = (key * _SPREAD & _MASK_64) >> self.shift
        while bits[at] and keys[at] != key:
            at = (at + 1) & mask
        return at


class BlockTable:
    """Keys in [0, 2^64) to bits in 1..255; with ``words`` also to a word in [0, 2^64)."""

    __slots__ = ("_has_words", "_places", "count")

    def __init__(self, *, words: bool = False) -> None:
        self._has_words = words
        self.count = 0
        self._places = _Places(_LEAST_PLACES, words=words)

    @property
    def byte_count(self) -> int:
        """Memory of all places."""
        return (self._places.mask + 1) * (17 if self._has_words else 9)

    def bits(self, key: int) -> int:
        """The key's bits; 0 where it is not there."""
        places = self._places
        return places.bits[places.find(key)]

    def word(self, key: int) -> int | None:
        """The key's word."""
        places = self._places
        at = places.find(key)
        return places.words[at] if places.bits[at] else None

    def run(self, keys: Sequence[int], start: int, stop: int) -> int:
        """The first place in ``keys``, from ``start`` on, whose key is not here; ``stop`` where all before it are."""
        places = self._places
        known, bits, mask, shift = places.keys, places.bits, places.mask, places.shift
        for index in range(start, stop):
            key = keys[index]
            at = (key * _SPREAD & _MASK_64) >> shift
            while bits[at] and known[at] != key:
                at = (at + 1) & mask
            if not bits[at]:
                return index
        return stop

    def add(self, key: int, bits: int, word: int = 0) -> None:
        """Set more of the key's bits, and its word."""
        places = self._places
        at = places.find(key)
        if not places.bits[at]:
            if 3 * (self.count + 1) > 2 * (places.mask + 1):
                self._grow()
                places = self._places
                at = places.find(key)
            self.count += 1
            places.keys[at] = key
        if self._has_words:
            places.words[at] = word
        places.bits[at] |= bits

    def take(self, key: int, bits: int) -> int:
        """Clear these of the key's bits; a key without bits is gone. Gives the bits that are left."""
        places = self._places
        at = places.find(key)
        if not places.bits[at]:
            return 0
        left = places.bits[at] & ~bits
        if left:
            places.bits[at] = left
        else:
            self.count -= 1
            _close(places, at)
        return left

    def _grow(self) -> None:
        old = self._places
        new = _Places(2 * (old.mask + 1), words=self._has_words)
        for at, bits in enumerate(old.bits):
            if bits:
                to = new.find(old.keys[at])
                new.keys[to], new.bits[to] = old.keys[at], bits
                if self._has_words:
                    new.words[to] = old.words[at]
        self._places = new


def _close(places: _Places, gap: int) -> None:
    """Free a place, moving back whatever was put further only because of it."""
    keys, bits, words, mask = places.keys, places.bits, places.words, places.mask
    at = gap
    while True:
        at = (at + 1) & mask
        if not bits[at]:
            bits[gap] = 0
            return
        home = (keys[at] * _SPREAD & _MASK_64) >> places.shift
        if (at - home) & mask >= (at - gap) & mask:
            keys[gap] = keys[at]
            if words:
                words[gap] = words[at]
            bits[gap] = bits[at]
            gap = at
