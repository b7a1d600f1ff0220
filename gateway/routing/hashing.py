"""Rendezvous hashing (Thaler and Ravishankar, 1998): replicas that share nothing agree on an order of backends.

Every (backend, key) pair gets a weight; the backends in falling order of weight are the key's homes. Removing one
backend moves only the keys it was first for. A weight is one multiplication, so that a thousand of them take a tenth of
a millisecond: both sides are spread evenly before (xxh3), and the product's high bits mix them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import xxhash

from gateway.types import BackendName, BackendView

_MASK = 0xFFFF_FFFF_FFFF_FFFF
# The fractional part of the golden ratio in 64 bits, odd: Fibonacci hashing (Knuth, TAOCP 3, 6.4).
_FACTOR = 0x9E37_79B9_7F4A_7C15


@lru_cache(maxsize=4096)
def _seed(name: BackendName) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


def running(seed: int) -> xxhash.xxh3_64:
    """A hash that is fed piece by piece and may be asked at any point; it reads memory views where they lie."""
    return xxhash.xxh3_64(seed=seed)


def spread(key: bytes) -> int:
    """A key as 64 evenly spread bits."""
    return xxhash.xxh3_64_intdigest(key)


def derived(digest: bytes, *parts: bytes) -> bytes:
    """An identity of 16 bytes for what is made of ``digest`` in a way that ``parts`` tell."""
    return xxhash.xxh3_128_digest(b"\0".join((digest, *parts)))


@dataclass(frozen=True, slots=True)
class Roll:
    """A large fleet in its order: each backend's share of a weight, and where each stands."""

    seeds: Sequence[int]
    places: Mapping[BackendName, int]


@lru_cache(maxsize=16)
def roll(names: tuple[BackendName, ...]) -> Roll:
    """Made once for a fleet, or for each kind of backends in it, until it changes."""
    return Roll(tuple([_seed(name) for name in names]), {name: place for place, name in enumerate(names)})


def weights(views: Sequence[BackendView], spread_key: int) -> list[int]:
    """A 64-bit weight of each backend for one key, the same on every machine."""
    return mixed([_seed(view.name) for view in views], spread_key)


def mixed(seeds: Sequence[int], spread_key: int) -> list[int]:
    """The weights of backends with these seeds."""
    return [((mix := (seed ^ spread_key) * _FACTOR & _MASK) ^ mix >> 32) * _FACTOR & _MASK for seed in seeds]


def first(views: Sequence[BackendView], spread_key: int) -> int:
    """The index of the key's first home; equal weights fall back on the name."""
    weighed = weights(views, spread_key)
    return max(range(len(views)), key=lambda index: (weighed[index], views[index].name))


def ranked(views: Sequence[BackendView], key: bytes) -> list[BackendView]:
    """The backends in the key's order, first home first."""
    weighed = dict(zip([view.name for view in views], weights(views, spread(key)), strict=True))
    return sorted(views, key=lambda view: (-weighed[view.name], view.name))
