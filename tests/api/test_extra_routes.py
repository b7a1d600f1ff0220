"""Which configured route a path takes, and that no prefix reaches engines' administration."""

from __future__ import annotations

import pytest

from gateway.api.extra_routes import ExtraRoute, ExtraRoutes
from gateway.api.routes import RouteKind
from gateway.types.paths import ADMIN_PATHS, Lane

NEAR, FAR, TALK = Lane(model="near"), Lane(model="far"), Lane(model="talk")
ROUTES = ExtraRoutes([
    ExtraRoute("/v1/", ("GET", "POST"), is_websocket=False, is_prefix=True, lane=FAR),
    ExtraRoute("/v1/voices/", ("GET",), is_websocket=False, is_prefix=True, lane=NEAR),
    ExtraRoute("/v1/realtime", ("GET",), is_websocket=True, is_prefix=False, lane=TALK),
])  # fmt: skip


@pytest.mark.parametrize(
    ("path", "lane", "kind"),
    [
        ("/v1/voices/anna", NEAR, RouteKind.PASS_THROUGH),
        ("/v1/files", FAR, RouteKind.PASS_THROUGH),
        ("/v1/realtime", TALK, RouteKind.WEBSOCKET),
    ],
)
def test_the_exact_one_else_the_longest_prefix(path: str, lane: Lane, kind: RouteKind) -> None:
    found = ROUTES.find(path)
    assert found is not None
    assert (found.lane, found.kind) == (lane, kind)


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v2/x", "/v1/load_lora_adapter", "/v1/unload_lora_adapter/x", "/v1/%6coad_lora_adapter", "/v1/../pause",
     "/v1//x", "/v1/x;y", *sorted(ADMIN_PATHS)],
)  # fmt: skip
def test_no_prefix_leads_to_administration_or_to_a_second_spelling(path: str) -> None:
    assert ROUTES.find(path) is None
