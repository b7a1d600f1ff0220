"""What backends are believed to hold: images and prefixes, from what they were given, bounded as their caches are.

A belief, not a fact: engines evict by their own rules, so a hit that proves wrong costs one encoding or prefill and
nothing else. Two kinds of contents, each least recently used first out, per backend:

* images. The engine's cache of *processed* images is large (vLLM's is 4 GiB, on the CPU's side), that of *encoded* ones
  small (vLLM's encoder cache holds about a batch of tokens, SGLang's 100 MB). What is in the first alone saves the
  processing, `PROCESSED_SHARE` of the work; what is in both saves all of it.
* links of prefixes, weighing the tokens they add to the one before; as many as the KV cache has room for. Only the
  deepest link that was held and those behind it are used, so a conversation's own end outlives what it shares with
  others.

Corrected by what responses tell: a prefix that was believed held and was not shows that the backend keeps less than we
think, so its room shrinks at once, to grow back slowly with every belief that proves right.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.routing.holding import Holding, RouteKey
from gateway.routing.table import HolderTable
from gateway.types import BackendName

# Resizing and normalising against encoding the same image: 10 to 20 ms of one CPU core against 80 ms (`ask.Profile`).
PROCESSED_SHARE = 0.2
# vLLM 0.11+: `mm_processor_cache_gb` 4, at 6 KiB a patch of 16 x 16 pixels (Qwen3-VL, float32), four patches a token.
PROCESSED_ROOM_TOKENS = 160_000
# vLLM's encoder cache is as large as its batch of tokens, 8,192 for an API server; SGLang's 100 MB hold some 12,000.
ENCODED_ROOM_TOKENS = 8_192
# A small deployment's KV cache; nearly every engine tells its own.
PREFIX_ROOM_TOKENS = 200_000
# Engines keep whole blocks (vLLM: 16 tokens, hybrid models up to some hundred) and compute the last token anew.
SLACK_TOKENS = 256
_SHRINK, _GROW, _LEAST_SHARE = 0.8, 1.01, 1 / 16
_UNKNOWN_IMAGE_TOKENS = 1_024
# Of so many that hold the deepest links one is as good as any that holds less.
_ENOUGH_HOLDERS = 32


@dataclass(frozen=True, slots=True)
class Room:
    """How many tokens a backend's caches hold; ``None`` = not known, a usual one is assumed."""

    encoded_tokens: int | None = None
    prefix_tokens: int | None = None


@dataclass(slots=True)
class _Backend:
    number: int
    encoded_tokens: int = ENCODED_ROOM_TOKENS
    prefix_tokens: int = PREFIX_ROOM_TOKENS
    kept_share: float = 1.0


class CacheIndex:
    """All backends of one gateway; at most ``entry_limit`` images and as many links."""

    def __init__(self, entry_limit: int) -> None:
        self._images = HolderTable(entry_limit)
        self._links = HolderTable(entry_limit)
        self._backends: dict[BackendName, _Backend] = {}
        self._names: list[BackendName] = []
        self._unused: list[int] = []

    @property
    def byte_count(self) -> int:
        """Bytes of both tables."""
        return self._images.byte_count + self._links.byte_count

    def __len__(self) -> int:
        return len(self._images) + len(self._links)

    def holdings(self, key: RouteKey) -> dict[BackendName, Holding]:
        """What each backend holds of ``key``, where that is anything; a look-up is no use and moves nothing."""
        prefixes = self._prefixes(key)
        counts: dict[int, int] = {}
        saved: dict[int, float] = {}
        names = self._names
        covered = {number: key.covered(tokens) for number, tokens in prefixes.items()} if key.ends else {}
        for index, digest in enumerate(key.images):
            patches = key.patches[index] if index < len(key.patches) else 0
            for number, age in self._images.holders(image_content(digest, key.scope)):
                counts[number] = counts.get(number, 0) + 1
                if number in covered and index < covered[number][0]:
                    continue
                is_encoded = age < self._backends[names[number]].encoded_tokens
                saved[number] = saved.get(number, 0.0) + (patches if is_encoded else patches * PROCESSED_SHARE)
        return {
            names[number]: Holding(
                counts.get(number, 0),
                int(saved.get(number, 0.0)) + (covered[number][1] if number in covered else 0),
                prefixes.get(number, 0),
            )
            for number in counts.keys() | prefixes.keys()
        }

    def _prefixes(self, key: RouteKey) -> dict[int, int]:
        """The deepest link that each backend holds, in tokens."""
        found: dict[int, int] = {}
        for content, tokens in zip(reversed(key.chain), reversed(key.chain_tokens), strict=True):
            for number, _ in self._links.holders(content):
                if number not in found:
                    found[number] = tokens
            if len(found) >= _ENOUGH_HOLDERS:
                break
        return found

    def learn(self, backend: BackendName, key: RouteKey, room: Room) -> None:
        """The backend is given this content now, and holds it from here on, as far as it has room."""
        known = self._backends.get(backend)
        if known is None:
            known = self._backends[backend] = _Backend(self._number(backend))
        known.encoded_tokens = room.encoded_tokens or ENCODED_ROOM_TOKENS
        known.prefix_tokens = room.prefix_tokens or PREFIX_ROOM_TOKENS
        number = known.number
        for index, digest in enumerate(key.images):
            tokens = key.tokens[index] if index < len(key.tokens) else _UNKNOWN_IMAGE_TOKENS
            content = image_content(digest, key.scope)
            self._images.use(number, content, tokens, fresh_below=known.encoded_tokens)
        if key.images:
            self._images.shrink(number, PROCESSED_ROOM_TOKENS)
        if key.chain:
            self._learn_links(number, key)
            self._links.shrink(number, int(known.prefix_tokens * known.kept_share))

    def _number(self, backend: BackendName) -> int:
        """One that nobody has: those of backends that are forgotten are given again, for they are few."""
        if self._unused:
            number = self._unused.pop()
            self._names[number] = backend
            return number
        self._names.append(backend)
        return len(self._names) - 1

    def _learn_links(self, number: int, key: RouteKey) -> None:
        """From the deepest link held on: what is before it need not be looked at."""
        first = len(key.chain) - 1
        while first > 0 and not self._links.holds(number, key.chain[first]):
            first -= 1
        before = key.chain_tokens[first - 1] if first else 0
        for content, tokens in zip(key.chain[first:], key.chain_tokens[first:], strict=True):
            self._links.use(number, content, tokens - before)
            before = tokens

    def correct(self, backend: BackendName, believed: Holding, cached_tokens: int) -> None:
        """The backend says how many prompt tokens it had held, where so many were ``believed``."""
        known = self._backends.get(backend)
        if known is None or believed.exact or not believed.prefix_tokens:
            return
        if cached_tokens + SLACK_TOKENS >= believed.prefix_tokens:
            known.kept_share = min(1.0, known.kept_share * _GROW)
            return
        # What is held in all is less than was believed held; what is left is believed to be the most recent part of it.
        room = max(1, known.prefix_tokens)
        kept = _SHRINK * min(known.kept_share, self._links.weight_of(known.number) / room)
        known.kept_share = max(_LEAST_SHARE, kept)
        self._links.shrink(known.number, int(room * known.kept_share))

    def forget(self, backend: BackendName) -> None:
        """The backend restarted or went away: its caches are empty."""
        known = self._backends.pop(backend, None)
        if known is not None:
            self._unused.append(known.number)
            self._images.forget(known.number)
            self._links.forget(known.number)


def image_content(digest: bytes, scope: int) -> int:
    """An image as 64 bits, of its own in every scope."""
    return int.from_bytes(digest[:8], "little") ^ scope
