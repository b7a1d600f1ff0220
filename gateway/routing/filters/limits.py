"""Backends below the limits that their operator set: requests, and prompt tokens without a first token. Soft.

The admission queue asks the same (``room``), so here a limit only says which backend has the room that somebody was let
in for. Only our own requests count; who else uses a backend is seen by its KV cache (``kv_headroom``).
"""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter, Views
from gateway.types import BackendView


def is_within_limits(view: BackendView, prompt_tokens: int) -> bool:
    """Whether one request more may go there; a prompt above the limit goes where no other is being computed."""
    if view.max_requests is not None and view.inflight_requests >= view.max_requests:
        return False
    if view.max_prefill_tokens is None or view.queued_prefill_tokens == 0:
        return True
    return view.queued_prefill_tokens + prompt_tokens <= view.max_prefill_tokens


def _narrow(views: Views, ask: RouteAsk) -> Views:
    asked = ask.prompt_tokens
    return [
        view
        for view in views
        if (view.max_requests is None and view.max_prefill_tokens is None) or is_within_limits(view, asked)
    ]


LIMITS = Filter("limits", _narrow)
