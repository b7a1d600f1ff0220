"""What a configured route may name, and how a wrong one is told."""

from __future__ import annotations

import pytest

from gateway.config.routes import RouteConfig, route_problems


@pytest.mark.parametrize(
    ("route", "told"),
    [
        (RouteConfig(), "needs a path or a prefix"),
        (RouteConfig(path="/a", prefix="/b/"), "needs a path or a prefix"),
        (RouteConfig(path="/metrics"), "administration of engines"),
        (RouteConfig(path="/v1/load_lora_adapter"), "administration of engines"),
        (RouteConfig(prefix="/collective_rpc/"), "administration of engines"),
        (RouteConfig(prefix="/"), "would offer all"),
        (RouteConfig(prefix="/v1"), "slash at both ends, not '/v1'"),
        (RouteConfig(path="/a/../pause"), "plain path"),
        (RouteConfig(path="/%70ause"), "plain path"),
        (RouteConfig(path="/v1/chat/completions"), "served by the gateway itself"),
        (RouteConfig(path="/a", methods=("FETCH",)), "methods: FETCH is none of"),
        (RouteConfig(path="/a", backends=("nobody",)), "no backend is called 'nobody'"),
    ],
)
def test_a_wrong_route_is_told_with_its_place(route: RouteConfig, told: str) -> None:
    problems = route_problems([route], frozenset({"a"}))
    assert len(problems) == 1
    assert problems[0].startswith("settings: routes.0")
    assert told in problems[0]


def test_a_path_is_given_once() -> None:
    assert "twice" in route_problems([RouteConfig(path="/a"), RouteConfig(path="/a")], frozenset())[0]


def test_right_ones_pass() -> None:
    routes = [RouteConfig(path="/v1/realtime", websocket=True, backends=("a",)), RouteConfig(prefix="/v1/voices/")]
    assert route_problems(routes, frozenset({"a"})) == []
