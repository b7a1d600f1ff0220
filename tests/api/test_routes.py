"""The allow-list of paths: what is on it, and that nothing hides behind another spelling."""

from __future__ import annotations

import pytest

from gateway.api.routes import PASS_THROUGH_PATHS, ROUTES, RouteKind, find_route
from gateway.dialects import DIALECTS


def test_every_dialect_has_its_paths() -> None:
    for dialect in DIALECTS:
        for path in dialect.paths:
            route = find_route(path)
            assert route is not None
            assert (route.kind, route.dialect, route.methods) == (RouteKind.CHAT, dialect, ("POST",))


@pytest.mark.parametrize("path", PASS_THROUGH_PATHS)
def test_inference_without_chat_passes_through(path: str) -> None:
    route = find_route(path)
    assert route is not None
    assert (route.kind, route.methods) == (RouteKind.PASS_THROUGH, ("POST",))


@pytest.mark.parametrize(
    "path",
    ["/pause", "/resume", "/sleep", "/wake_up", "/reset_mm_cache", "/reset_prefix_cache", "/flush_cache",
     "/collective_rpc",
     "/metrics", "/server_info", "/get_server_info", "/update_weights", "/v1/load_lora_adapter", "/start_profile",
     "/abort_request", "/docs", "/openapi.json", "/-/reload", "/livez", "/",
     "/api/chat", "/api/generate", "/invocations", "/vertex_generate"],
)  # fmt: skip
def test_admin_paths_of_engines_and_of_ours_are_unknown(path: str) -> None:
    assert find_route(path) is None


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions/", "//v1/chat/completions", "/v1/../v1/chat/completions", "/v1/chat%2fcompletions",
     "/V1/chat/completions", "/v1/chat/completions;x", "/v1/models/../../pause", "v1/models", ""],
)  # fmt: skip
def test_another_spelling_is_another_path(path: str) -> None:
    assert find_route(path) is None


@pytest.mark.parametrize("path", ["/v1/models/x", "/v1/models/org/x.1-2", "/v1/models/org%2Fx"])
def test_a_model_by_its_name(path: str) -> None:
    route = find_route(path)
    assert route is not None
    assert (route.kind, route.methods) == (RouteKind.MODELS, ("GET", "HEAD"))


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/models//x", "/v1/models/../x", "/v1/models/x/.."])
def test_no_other_path_looks_like_a_model(path: str) -> None:
    assert find_route(path) is None


def test_names_are_a_small_closed_set_for_metrics() -> None:
    names = {route.name for route in ROUTES.values()}
    assert names == {"pass_through", "models", "health", "estimate"} | {dialect.name for dialect in DIALECTS}


def test_an_estimate_reads_what_chat_completions_reads() -> None:
    route = find_route("/v1/estimate")
    assert route is not None
    assert (route.kind, route.methods, route.dialect) == (RouteKind.ESTIMATE, ("POST",), DIALECTS[0])


def test_responses_are_fetched_and_cancelled_by_their_ids() -> None:
    fetch, cancel = find_route("/v1/responses/resp_1"), find_route("/v1/responses/resp_1/cancel")
    assert fetch is not None
    assert cancel is not None
    assert (fetch.kind, fetch.methods) == (RouteKind.PASS_THROUGH, ("GET",))
    assert (cancel.kind, cancel.methods) == (RouteKind.PASS_THROUGH, ("POST",))
    assert find_route("/v1/responses/resp_1/input_items") is None
