"""Which of the scored candidates it is, and the word for why.

* Text: the best score; equals are told apart by rendezvous on the request id, so they are used evenly.
* Images nobody holds: their rendezvous home, unless that is over the load bound; then the next home, and so on.
  Another place costs nothing, so the bound is tight.
* Images somebody holds: the best-scored holder, unless every holder is over the *loose* bound or its first token
  would come later than elsewhere by more than ``leave_s``; then the images get one more home as above.

The key of the rendezvous is the first image: a conversation's history keeps its home whatever is appended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.hashing import weight
from gateway.routing.scorers.contract import Field

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Pick:
    """``index`` into the field; ``reason`` is one word for metrics and the log."""

    index: int
    reason: str


def tight_bound_tokens(inflight_kv_tokens: int, cost: int, candidate_count: int, profile: Profile) -> int:
    """What one backend may have in flight with this request: the factor times the mean, in whole requests.

    ``inflight_kv_tokens`` is the sum over all candidates. At least one request, so an idle backend is never full.
    """
    bound = profile.load_factor * (inflight_kv_tokens + cost) / candidate_count
    return math.ceil(bound / cost) * cost


def pick(field: Field, scores: Sequence[float]) -> Pick:
    """Decide among the candidates of ``field``; ``scores`` are their weighted sums in the same order."""
    everybody = range(len(field.views))
    if len(field.views) == 1:
        return Pick(0, "only_one")
    if not field.ask.images:
        return Pick(_best(field, scores, everybody, field.ask.request_id.encode()), "least_loaded")
    key = field.ask.images[0]
    holders = [index for index in everybody if field.holdings[index].images > 0]
    staying = _staying(field, holders)
    if staying:
        return Pick(_best(field, scores, staying, key), "holds_images")
    newcomers = [index for index in everybody if field.holdings[index].images == 0] or list(everybody)
    return Pick(_home(field, newcomers, key), "another_home" if holders else "rendezvous")


def _best(field: Field, scores: Sequence[float], among: Iterable[int], key: bytes) -> int:
    candidates = list(among)
    best = max(scores[index] for index in candidates)
    equals = [index for index in candidates if best - scores[index] <= _EQUAL]
    if len(equals) == 1:
        return equals[0]
    return max(equals, key=lambda index: (weight(field.views[index].name, key), field.views[index].name))


def _home(field: Field, among: Sequence[int], key: bytes) -> int:
    """The first home within the bound; with nobody within it (uneven costs), the one with least in flight."""
    cost = _cost(field.ask)
    total = sum(view.inflight_kv_tokens for view in field.views)
    bound = tight_bound_tokens(total, cost, len(field.views), field.profile)
    fitting = [index for index in among if field.views[index].inflight_kv_tokens + cost <= bound]
    if not fitting:
        return min(among, key=lambda index: (field.views[index].inflight_kv_tokens, field.views[index].name))
    return max(fitting, key=lambda index: (weight(field.views[index].name, key), field.views[index].name))


def _staying(field: Field, holders: Sequence[int]) -> list[int]:
    """The holders that are neither too full nor too slow for the images to stay with them."""
    if not holders:
        return []
    count = len(field.views)
    mean_requests = sum(view.inflight_requests for view in field.views) / count
    fullest = max(mean_requests + field.profile.spare_requests, field.profile.load_factor * mean_requests)
    latest_s = min(field.first_token_s) + field.profile.leave_s
    return [
        index
        for index in holders
        if field.views[index].inflight_requests < fullest and field.first_token_s[index] <= latest_s
    ]


def _cost(ask: RouteAsk) -> int:
    return max(1, ask.kv_tokens, ask.prompt_tokens)
