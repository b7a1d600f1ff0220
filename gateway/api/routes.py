"""Which paths exist, and what happens on each. The list is an allow-list: what is not here never reaches an engine.

Decided here: the kind of every path. Not decided here: what a dialect reads (its file declares its own paths). Engine
admin paths (/pause, /sleep, /reset_mm_cache, /flush_cache, /collective_rpc, /metrics ...) are deliberately unknown, and
so are APIs whose images nobody reads here: Ollama's (/api/chat, /api/generate), SageMaker's and Vertex's envelopes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from gateway.dialects import DIALECTS, Dialect
from gateway.stages.following import id_in
from gateway.types.paths import ANYWHERE, Lane


class RouteKind(StrEnum):
    CHAT = "chat"  # a dialect we understand: the whole journey
    PASS_THROUGH = "pass_through"  # noqa: S105  # no password: inference without chat media: streamed to a backend untouched
    ESTIMATE = "estimate"  # a chat request that is priced and not sent
    PREPARE = "prepare"  # a request that is made ready and given back
    WEBSOCKET = "websocket"  # a conversation, relayed both ways; by configuration only
    MODELS = "models"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Route:
    kind: RouteKind
    name: str
    methods: tuple[str, ...]
    dialect: Dialect | None = None
    lane: Lane = ANYWHERE


# Inference that is no JSON: streamed to a backend as it comes, its model told by the form's first fields.
PASS_THROUGH_PATHS = ("/v1/audio/transcriptions", "/v1/audio/translations")

_POST = ("POST",)
_GET = ("GET", "HEAD")


_RESPONSE = Route(RouteKind.PASS_THROUGH, "pass_through", ("GET",))
_CANCEL = Route(RouteKind.PASS_THROUGH, "pass_through", _POST)
_MODELS = Route(RouteKind.MODELS, "models", _GET)
# A model's name may hold slashes; dots alone between two of them would be another path to somebody.
_MODEL = re.compile(r"/v1/models/(?!(?:.*/)?\.{1,2}(?:/|$))[^/].*")


def _table() -> dict[str, Route]:
    table: dict[str, Route] = {}
    for dialect in DIALECTS:
        for path in dialect.paths:
            table[path] = Route(RouteKind.CHAT, dialect.name, _POST, dialect)
    for path in PASS_THROUGH_PATHS:
        table.setdefault(path, Route(RouteKind.PASS_THROUGH, "pass_through", _POST))
    table["/v1/estimate"] = Route(RouteKind.ESTIMATE, "estimate", _POST, DIALECTS[0])
    table["/v1/prepare"] = Route(RouteKind.PREPARE, "estimate", _POST)
    table["/v1/models"] = _MODELS
    table["/health"] = Route(RouteKind.HEALTH, "health", _GET)
    return table


ROUTES = _table()


def find_route(path: str) -> Route | None:
    """The route of a path exactly as it was sent: no normalisation, so nothing can hide behind ``..`` or ``%2e``."""
    found = ROUTES.get(path)
    if found is not None:
        return found
    if _MODEL.fullmatch(path):
        return _MODELS
    if id_in(path) is None:
        return None
    return _CANCEL if path.endswith("/cancel") else _RESPONSE
