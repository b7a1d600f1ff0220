"""Backends whose context and KV cache are large enough. Soft: the count may be an upper bound, the engine decides."""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    if view.context_tokens is not None and ask.prompt_tokens > view.context_tokens:
        return False
    return view.kv_capacity_tokens is None or ask.kv_tokens <= view.kv_capacity_tokens


CONTEXT = Filter("context", _keeps)
