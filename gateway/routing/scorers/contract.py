"""What a scorer sees: the whole field of candidates at once, because a score compares. And how work becomes seconds.

The expected time to the first token is what is queued there and what the request itself needs that is not held, tokens
and patches by the backend's own pace, where that was observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.kv_headroom import FRESH_S
from gateway.routing.holding import Holding
from gateway.types import BackendView
from gateway.types.per_request import per_request


@per_request(frozen=True, slots=True)
class Field:
    """The candidates that passed the filters, with what is known of each in the same order.

    ``holdings`` is what each holds of the request, ``queue_s`` how long what is queued there takes, ``work_s`` how long
    what it does not hold. ``home`` is the index of the content's home, if it has one,
    ``likelihood`` how likely it holds what we never sent there.
    """

    ask: RouteAsk
    profile: Profile
    views: Sequence[BackendView]
    holdings: Sequence[Holding]
    queue_s: Sequence[float]
    work_s: Sequence[float]
    home: int | None = None
    likelihood: float = 0.0


@dataclass(frozen=True, slots=True)
class Scorer:
    """``cost_s`` gives seconds per candidate of the field, in its order; fewer are better, only differences count."""

    name: str
    cost_s: Callable[[Field], Sequence[float]]


def queued_tokens(view: BackendView, prompt_tokens: int, prefill_s_per_token: float) -> int:
    """Prompt tokens queued on a backend: ours that nobody answered yet, and strangers' (other gateways, direct
    clients).

    Of those an engine reports as waiting, strangers' is the share that were not ours when it was asked. Where it does
    not tell their tokens, they are taken to be like this request's. Since the report the engine has worked: so much of
    it is gone as its pace allows. What strangers sent since then nobody told; they spread it as we do, so it falls on
    all alike. A report that is old says nothing.
    """
    waiting = view.engine_waiting
    if not waiting or (view.scraped_age_s is not None and view.scraped_age_s > FRESH_S):
        return view.queued_prefill_tokens
    ours = view.inflight_requests if view.scraped_inflight_requests is None else view.scraped_inflight_requests
    known = waiting + (view.engine_running or 0)
    share = max(0, known - ours) / known
    each = waiting * prompt_tokens if view.engine_waiting_tokens is None else view.engine_waiting_tokens
    done = (view.scraped_age_s or 0.0) / prefill_s_per_token
    return view.queued_prefill_tokens + max(0, int(share * each - done))
