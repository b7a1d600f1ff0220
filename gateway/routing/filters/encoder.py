"""Backends whose encoder cache takes the request's largest image: vLLM refuses a larger one (400).

Hard only where the count is the engine's own; an estimate is no reason to refuse.
"""

from __future__ import annotations

from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _largest(ask: RouteAsk) -> int:
    return max(ask.key.tokens, default=0)


def _narrow(views: Views, ask: RouteAsk) -> Views:
    largest = _largest(ask)
    if not largest:
        return views
    return [view for view in views if view.encoder_tokens is None or largest <= view.encoder_tokens]


def _refuse(ask: RouteAsk, _profile: Profile, views: Views) -> GatewayError | None:
    if not ask.is_exact:
        return None
    largest, most = _largest(ask), max((view.encoder_tokens or 0 for view in views), default=0)
    number = ask.key.tokens.index(largest) + 1
    return InvalidRequest(
        f"Image {number} of this request has {largest} tokens; the encoder of no backend takes more than {most}.",
        rule="backend.encoder_tokens",
    )


ENCODER = Filter("encoder", _narrow, _refuse)
