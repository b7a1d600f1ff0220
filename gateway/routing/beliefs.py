"""What every backend is believed to hold: the approximate index, overruled by exact knowledge where that is fresh.

Decided here: which of the two counts. Not decided here: how either is kept (`index`; an `ExactPrefixes`).
"""

from __future__ import annotations

from dataclasses import replace

from gateway.routing.holding import NOTHING, Believed, ExactPrefixes, Holding, RouteKey
from gateway.routing.index import SLACK_TOKENS, CacheIndex, Room
from gateway.routing.reuse import Reuse
from gateway.types import BackendName

UNKNOWN_ROOM = Room()


class Beliefs:
    """All backends of one gateway. ``exact`` may be missing; a backend it does not answer for is believed of."""

    def __init__(self, entry_limit: int, exact: ExactPrefixes | None = None) -> None:
        self._index = CacheIndex(entry_limit)
        self._exact = exact
        self._reuse = Reuse()

    def holdings(self, key: RouteKey) -> Believed:
        """What each backend holds of ``key``; who holds nothing is left out. A look-up is no use and moves nothing."""
        found = self._index.holdings(key)
        if self._exact is not None:
            for backend, tokens in self._exact.prefix_tokens(key).items():
                held = found.get(backend, NOTHING)
                patches = max(held.encode_patches, key.covered(tokens)[1])
                found[backend] = replace(held, encode_patches=patches, prefix_tokens=tokens, exact=True)
        return Believed(found, self._reuse.share)

    def learn(self, backend: BackendName, key: RouteKey, room: Room = UNKNOWN_ROOM) -> None:
        """The backend is given this request of ours now, and holds its content from here on."""
        content = key.content
        if content is not None and key.chain:
            self._reuse.met(content, key.chain[-1])
        self._index.learn(backend, key, room)

    def hear(self, backend: BackendName, key: RouteKey, room: Room = UNKNOWN_ROOM) -> None:
        """The backend was given this by somebody else."""
        self._index.learn(backend, key, room)

    def correct(self, backend: BackendName, believed: Holding, cached_tokens: int) -> None:
        """The backend said how much of this prompt it had held, where ``believed`` had been expected."""
        if cached_tokens > believed.prefix_tokens + SLACK_TOKENS and not believed.exact:
            self._reuse.found()
        self._index.correct(backend, believed, cached_tokens)

    def forget(self, backend: BackendName) -> None:
        """The backend restarted or went away: its caches are empty."""
        self._index.forget(backend)
        if self._exact is not None:
            self._exact.forget(backend)
