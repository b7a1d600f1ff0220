"""Who decides in the routing simulation: the gateway's own code, and other routers' policies as they document them.

The others are written down from their descriptions, in their favour where those are silent: they know at once what
their own requests do, and those that read engines' events know exactly what is cached. One object is one replica of a
router.

What is documented or was measured by us: sglang-router 0.3.2's `cache_aware` builds its tree from text parts alone;
vllm-router 0.1.17's `cache_aware` gives up on images and balances by load (here `least_loaded`), its `consistent_hash`
reads a session header and, without one, sends all chat requests to one backend; llm-d's scorer of image caches (v0.10)
keeps 2,048 items a pod and counts items, not tokens; Dynamo adds prefill that is not cached and blocks in use, with
weights. Assumed, since nothing we have says it: the thresholds of `CacheAware` (matched 0.3, loads 64 apart and 1.5
times), equal weights of llm-d's scorers, Dynamo's weights of 1 and no randomness, and that without a session
`consistent_hash` spreads at random, in its favour.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from benchmarks.routed import Engine, Kept, Request, Served
from gateway.routing.ask import Decision, RouteAsk
from gateway.routing.beliefs import Beliefs
from gateway.routing.decide import decide
from gateway.routing.hashing import spread
from gateway.routing.index import Room
from gateway.stages.observing import cost_there
from gateway.types import BackendName, RequestCost
from gateway.upstream.accounts import OpenAccount
from gateway.upstream.engines.contract import EngineLoad
from gateway.upstream.registry import Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings

INDEX_ENTRIES = 200_000


class Router(Protocol):
    """One replica: chooses an engine by its number, and hears what came of it."""

    def choose(self, request: Request, /) -> int: ...
    def sent(self, request: Request, chosen: int, served: Served, /) -> None: ...
    def scrape(self, now_s: float, engines: Sequence[Engine], /) -> None: ...


class Ours:
    """The gateway: registry, accounts, beliefs and decision are the real ones."""

    def __init__(self, backends: int, seed: int) -> None:
        settings = UpstreamSettings(tuple(BackendSettings(f"http://b{number}:80") for number in range(backends)))
        self._registry = Registry(settings)
        self._names = [BackendName(entry.backend_name) for entry in settings.backends]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._beliefs = Beliefs(INDEX_ENTRIES)
        self._open: list[tuple[float, int, OpenAccount, bool]] = []
        self._ties = count()
        self._asked = 0
        self._seed = seed
        self._last: tuple[Decision, OpenAccount] | None = None

    def choose(self, request: Request) -> int:
        while self._open and self._open[0][0] <= request.at_s:
            _, _, account, ends = heappop(self._open)
            if ends:
                account.close()
            else:
                account.answered()
        self._asked += 1
        cost = RequestCost(request.prompt_tokens, request.output_tokens, request.key.encode_patches)
        ask = RouteAsk(
            key=request.key,
            prompt_tokens=cost.prompt_tokens,
            kv_tokens=cost.kv_tokens,
            needs_vision=bool(request.key.images),
            request_id=f"{self._seed}-{self._asked}",
        )
        views = self._registry.views(request.at_s)
        decision = decide(views, ask, self._beliefs.holdings(request.key))
        backend = self._registry[decision.backend]
        self._last = decision, backend.accounts.open(cost_there(cost, decision, streams=True), request.at_s)
        self._beliefs.learn(decision.backend, request.key, Room())
        return self._numbers[decision.backend]

    def sent(self, request: Request, _chosen: int, served: Served) -> None:
        assert self._last is not None
        decision, account = self._last
        first_s = request.at_s + served.first_token_s
        heappush(self._open, (first_s, next(self._ties), account, False))
        heappush(self._open, (first_s + request.output_tokens * 0.02, next(self._ties), account, True))
        self._beliefs.correct(decision.backend, decision.holding, served.cached_tokens)
        ahead = decision.ahead
        tokens = ahead.queued_tokens + request.prompt_tokens - served.cached_tokens
        self._registry[decision.backend].learn_pace(
            tokens, ahead.queued_patches + ahead.own_patches, served.first_token_s
        )

    def scrape(self, now_s: float, engines: Sequence[Engine]) -> None:
        for name, engine in zip(self._names, engines, strict=True):
            running, waiting, tokens = engine.load(now_s)
            self._registry[name].learn_load(EngineLoad(running, waiting, waiting_tokens=tokens), now_s)


class Counting:
    """What the others have in common: how many of its own requests each engine has now."""

    def __init__(self, backends: int, seed: int) -> None:
        self.dice = random.Random(seed)
        self.inflight = [0] * backends
        self.tokens = [0] * backends
        self._ends: list[tuple[float, int, int]] = []

    def choose(self, request: Request) -> int:
        while self._ends and self._ends[0][0] <= request.at_s:
            _, number, tokens = heappop(self._ends)
            self.inflight[number] -= 1
            self.tokens[number] -= tokens
        return self.pick(request)

    def pick(self, _request: Request) -> int:
        """The choice itself."""
        return self.least()

    def sent(self, request: Request, chosen: int, served: Served) -> None:
        self.inflight[chosen] += 1
        self.tokens[chosen] += request.prompt_tokens
        ends_s = request.at_s + served.first_token_s + request.output_tokens * 0.02
        heappush(self._ends, (ends_s, chosen, request.prompt_tokens))

    def scrape(self, _now_s: float, _engines: Sequence[Engine]) -> None:
        """They are told nothing more."""

    def least(self) -> int:
        """Fewest of its own in flight, ties at random."""
        fewest = min(self.inflight)
        return self.dice.choice([number for number, each in enumerate(self.inflight) if each == fewest])


class RoundRobin(Counting):
    """One after the other."""

    _next = 0

    def pick(self, _request: Request) -> int:
        self._next = (self._next + 1) % len(self.inflight)
        return self._next


class LeastLoaded(Counting):
    """Fewest requests in flight."""


class PureHash(Counting):
    """Rendezvous on the content's home, whatever the load."""

    def pick(self, request: Request) -> int:
        return hashed(request.key.home or 0, len(self.inflight))


class ConsistentHash(Counting):
    """vllm-router's `consistent_hash` by a session header that names the conversation (without: at random)."""

    def pick(self, request: Request) -> int:
        return hashed(request.session or self.dice.getrandbits(60), len(self.inflight))


class CacheAware(Counting):
    """sglang-router's `cache_aware`: a tree of text alone; shortest queue when loads are far apart."""

    _threshold, _apart, _times = 0.3, 64, 1.5

    def __init__(self, backends: int, seed: int) -> None:
        super().__init__(backends, seed)
        self._trees: list[dict[int, None]] = [{} for _ in range(backends)]

    def pick(self, request: Request) -> int:
        most, fewest = max(self.inflight), min(self.inflight)
        chain = request.text_chain
        if most - fewest > self._apart and most > self._times * fewest:
            chosen = self.least()
        else:
            matched = [sum(link in tree for link in chain) / max(1, len(chain)) for tree in self._trees]
            chosen = matched.index(max(matched))
            if matched[chosen] <= self._threshold:
                sizes = [len(tree) for tree in self._trees]
                chosen = sizes.index(min(sizes))
        self._trees[chosen].update(dict.fromkeys(chain))
        return chosen


class Scored(Counting):
    """llm-d: scorers from 0 to 1 added up: images seen (LRU of 2,048 items, counted), prefix, queue."""

    _items = 2048

    def __init__(self, backends: int, seed: int) -> None:
        super().__init__(backends, seed)
        self._images = [Kept(self._items) for _ in range(backends)]
        self._links = [Kept(self._items) for _ in range(backends)]

    def pick(self, request: Request) -> int:
        images, chain = request.key.images, request.key.chain
        most = max(self.inflight) or 1
        scores = []
        for number, flying in enumerate(self.inflight):
            seen = sum(image in self._images[number] for image in images) / len(images) if images else 0.0
            prefix = sum(link in self._links[number] for link in chain) / len(chain)
            scores.append(seen + prefix + 1 - flying / most)
        best = max(scores)
        chosen = self.dice.choice([number for number, score in enumerate(scores) if score == best])
        for image in images:
            self._images[chosen].use(image, 1)
        for link in chain:
            self._links[chosen].use(link, 1)
        return chosen


class BlockCost(Counting):
    """Dynamo: prefill blocks that are not cached (known exactly) plus blocks in use, weights 1, the least."""

    def __init__(self, backends: int, seed: int) -> None:
        super().__init__(backends, seed)
        self.engines: Sequence[Engine] = ()

    def scrape(self, _now_s: float, engines: Sequence[Engine]) -> None:
        self.engines = engines

    def pick(self, request: Request) -> int:
        costs = []
        for number, engine in enumerate(self.engines):
            chain = zip(reversed(request.key.chain), reversed(request.key.chain_tokens), strict=True)
            cached = next((tokens for link, tokens in chain if link in engine.prefixes), 0)
            costs.append((request.prompt_tokens - cached + self.tokens[number]) // 16)
        best = min(costs)
        return self.dice.choice([number for number, cost in enumerate(costs) if cost == best])


def hashed(key: int, backends: int) -> int:
    """Rendezvous over engine numbers."""
    return max(range(backends), key=lambda number: spread(key.to_bytes(8, "little") + number.to_bytes(4, "little")))


ROUTERS: dict[str, type[Ours | Counting]] = {
    "ours": Ours,
    "round_robin": RoundRobin,
    "least_loaded": LeastLoaded,
    "pure_hash": PureHash,
    "vllm_consistent_hash": ConsistentHash,
    "sglang_cache_aware": CacheAware,
    "llmd_scorers": Scored,
    "dynamo_cost": BlockCost,
}
