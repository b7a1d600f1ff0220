"""Backends whose context and KV cache are large enough. Soft: the count may be an upper bound, the engine decides."""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    prompt, whole = ask.prompt_tokens, ask.kv_tokens
    return [
        view
        for view in views
        if (view.context_tokens is None or prompt <= view.context_tokens)
        and (view.kv_capacity_tokens is None or whole <= view.kv_capacity_tokens)
    ]


CONTEXT = Filter("context", _narrow)
