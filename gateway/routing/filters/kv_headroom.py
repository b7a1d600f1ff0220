"""Backends whose KV cache has room for the request. Soft: who queues in an engine is served, if late.

The local account counts what our own requests may come to hold, prompts and whole output reserves, from the moment a
backend is chosen. The engine's own report (vLLM's ``kv_cache_usage_perc``, SGLang's ``token_usage``) counts what
everybody really holds, but late. So a backend has room while the account says so and the engine does not say that it is
full; and also when the account is full of reserves that nobody uses, while a fresh report shows the room and an empty
queue. A backend on which nothing of ours runs has room for whatever it serves.
"""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter, Views
from gateway.types import BackendView

# A report of the last two rounds of probes; an older one says nothing of now.
FRESH_S = 10.0
# An engine that has others waiting at this use is full, whatever our account says (vLLM preempts near 1).
FULL_RATIO = 0.95


def has_headroom(view: BackendView, kv_tokens: int, fill: float = 1.0) -> bool:
    """Whether ``kv_tokens`` more may be held there; ``fill`` scales the capacity (2.0: twice as much is reserved)."""
    capacity = view.kv_capacity_tokens
    if capacity is None or view.inflight_requests == 0:
        return True
    fits_account = view.inflight_kv_tokens + kv_tokens <= capacity * fill
    if view.kv_use_ratio is None or view.scraped_age_s is None or view.scraped_age_s > FRESH_S:
        return fits_account
    if view.engine_waiting:
        return fits_account and view.kv_use_ratio < FULL_RATIO
    used = view.kv_use_ratio * capacity + view.queued_prefill_tokens
    return fits_account or used + kv_tokens <= capacity


def _narrow(views: Views, ask: RouteAsk) -> Views:
    asked = ask.kv_tokens
    return [
        view
        for view in views
        if view.kv_capacity_tokens is None or view.inflight_requests == 0 or has_headroom(view, asked)
    ]


KV_HEADROOM = Filter("kv_headroom", _narrow)
