"""The fleet in which routing is simulated: requests with known contents, engines that queue, compute and cache.

An engine prefills one request after another (chunked prefill makes of a queue about the same) and decodes beside that.
Its KV cache and its two image caches are least-recently-used lists of their real sizes. Time is simulated; whatever
decides is the real code. Prices are those of ``routing.ask.Profile``: a 7-8B model on one data-centre GPU.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from gateway.routing.ask import Profile
from gateway.routing.holding import RouteKey
from gateway.routing.index import ENCODED_ROOM_TOKENS, PROCESSED_ROOM_TOKENS, PROCESSED_SHARE

_PRICES = Profile()
PREFILL_S, ENCODE_S = _PRICES.prefill_s_per_token, _PRICES.encode_s_per_patch
STEP_S = 0.02
KV_TOKENS = 400_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``text_chain`` is the prefix without images, as a router sees it that reads text alone."""

    at_s: float
    key: RouteKey
    text_chain: tuple[int, ...]
    session: int
    prompt_tokens: int
    output_tokens: int

    @property
    def full_s(self) -> float:
        """What it costs an engine that holds nothing."""
        return self.prompt_tokens * PREFILL_S + self.key.encode_patches * ENCODE_S


class Kept:
    """A least-recently-used list of contents by weight."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._held: OrderedDict[object, int] = OrderedDict()
        self._weight = 0

    def __contains__(self, content: object) -> bool:
        return content in self._held

    def use(self, content: object, weight: int) -> None:
        if content in self._held:
            self._held.move_to_end(content)
            return
        self._held[content] = weight
        self._weight += weight
        while self._weight > self._limit and len(self._held) > 1:
            self._weight -= self._held.popitem(last=False)[1]


@dataclass(slots=True)
class Served:
    """What became of a request: when its first token came, how long it was computed, how much was cached."""

    first_token_s: float
    computed_s: float
    cached_tokens: int


@dataclass(slots=True)
class Engine:
    """One simulated engine; ``scale`` makes its caches so many times as large."""

    scale: int = 1
    free_at_s: float = 0.0
    busy_s: float = 0.0
    queue: deque[tuple[float, float, float, int]] = field(default_factory=deque)
    prefixes: Kept = field(init=False)
    processed: Kept = field(init=False)
    encoded: Kept = field(init=False)

    def __post_init__(self) -> None:
        self.prefixes = Kept(self.scale * KV_TOKENS)
        self.processed = Kept(self.scale * PROCESSED_ROOM_TOKENS)
        self.encoded = Kept(self.scale * ENCODED_ROOM_TOKENS)

    def serve(self, request: Request) -> Served:
        """Take a request now; it waits for those before it."""
        key = request.key
        cached = 0
        for content, tokens in zip(reversed(key.chain), reversed(key.chain_tokens), strict=True):
            if content in self.prefixes:
                cached = tokens
                break
        before = 0
        for content, tokens in zip(key.chain, key.chain_tokens, strict=True):
            self.prefixes.use(content, tokens - before)
            before = tokens
        patches = 0.0
        covered, _ = key.covered(cached)
        for image, each, tokens in list(zip(key.images, key.patches, key.tokens, strict=True))[covered:]:
            if image not in self.encoded:
                patches += each * (1 - PROCESSED_SHARE) if image in self.processed else each
            self.processed.use(image, tokens)
            self.encoded.use(image, tokens)
        computed_s = (request.prompt_tokens - cached) * PREFILL_S + patches * ENCODE_S
        begins_s = max(request.at_s, self.free_at_s)
        self.free_at_s = begins_s + computed_s
        self.busy_s += computed_s + request.output_tokens * STEP_S / 32
        ends_s = self.free_at_s + request.output_tokens * STEP_S
        self.queue.append((begins_s, self.free_at_s, ends_s, request.prompt_tokens - cached))
        return Served(self.free_at_s - request.at_s + STEP_S, computed_s, cached)

    def load(self, now_s: float) -> tuple[int, int, int]:
        """(running, waiting, prompt tokens waiting), as its metrics would say."""
        while self.queue and self.queue[0][2] <= now_s:
            self.queue.popleft()
        running = waiting = tokens = 0
        for begins_s, _, ends_s, uncached in self.queue:
            if begins_s > now_s:
                waiting += 1
                tokens += uncached
            elif ends_s > now_s:
                running += 1
        return running, waiting, tokens


def possible_s(requests: list[Request], backends: int) -> list[float]:
    """What each request costs one engine with the caches of all together: the ideal, nothing twice, nothing apart."""
    engine = Engine(scale=backends)
    return [engine.serve(request).computed_s for request in requests]
