"""Rendezvous hashing (Thaler and Ravishankar, 1998): replicas that share nothing agree on an order of backends.

Every (backend, key) pair gets a weight; the backends in falling order of weight are the key's homes. Removing one
backend moves only the keys it was first for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import xxhash

from gateway.types import BackendName, BackendView


@lru_cache(maxsize=4096)
def _seed(name: BackendName) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


def weight(name: BackendName, key: bytes) -> int:
    """A 64-bit weight of one backend for one key, the same on every machine."""
    return xxhash.xxh3_64_intdigest(key, seed=_seed(name))


def ranked(views: Iterable[BackendView], key: bytes) -> list[BackendView]:
    """The backends in the key's order, first home first; equal weights fall back on the name."""
    return sorted(views, key=lambda view: (-weight(view.name, key), view.name))
