"""Which images a backend is believed to hold: per backend the placement digests it saw last, bounded.

A belief, not a fact: engines evict by their own rules, so a hit that proves wrong costs one encoding and nothing
else. Recency follows the order of use on that backend, as in the engines' own LRU caches.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from gateway.routing.holding import Holding, RouteKey
from gateway.types import BackendName


class ImageIndex:
    """At most ``capacity`` digests per backend; the least recently used one leaves first."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self._capacity = capacity
        self._seen: dict[BackendName, OrderedDict[bytes, None]] = {}

    def learn(self, backend: BackendName, images: Sequence[bytes]) -> None:
        """The backend has now seen these digests, the last one most recently."""
        seen = self._seen.setdefault(backend, OrderedDict())
        for digest in images:
            seen[digest] = None
            seen.move_to_end(digest)
        while len(seen) > self._capacity:
            seen.popitem(last=False)

    def held(self, backend: BackendName, images: Sequence[bytes]) -> int:
        """How many of these digests the backend is believed to hold; a look-up is no use and moves nothing."""
        seen = self._seen.get(backend)
        if not seen:
            return 0
        return sum(digest in seen for digest in images)

    def holdings(self, key: RouteKey) -> dict[BackendName, Holding]:
        """What each backend holds of the images of ``key``, where that is anything."""
        patches = dict(zip(key.images, key.patches, strict=False))
        found = {}
        for backend, seen in self._seen.items():
            held = [digest for digest in key.images if digest in seen]
            if held:
                found[backend] = Holding(len(held), sum(patches.get(digest, 0) for digest in held))
        return found

    def forget(self, backend: BackendName) -> None:
        """The backend restarted or went away: its caches are empty."""
        self._seen.pop(backend, None)

    def count(self, backend: BackendName) -> int:
        return len(self._seen.get(backend, ()))
