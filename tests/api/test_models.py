"""GET /v1/models: what all backends serve, once each."""

from __future__ import annotations

import json
from typing import Any

from gateway.api.models import merged_models
from gateway.types import BackendName, BackendView, EngineKind


def listed(*views: BackendView) -> list[dict[str, Any]]:
    document = json.loads(merged_models(views))
    assert document["object"] == "list"
    found: list[dict[str, Any]] = document["data"]
    return found


def view(name: str, *models: str, **known: Any) -> BackendView:
    return BackendView(BackendName(name), "http://10.0.0.7", EngineKind.GENERIC, models=models, **known)


def test_names_are_merged_in_the_order_of_backends() -> None:
    found = listed(view("a", "x", "y"), view("b", "y", "z"))
    assert [entry["id"] for entry in found] == ["x", "y", "z"]
    assert {entry["object"] for entry in found} == {"model"}


def test_the_largest_context_is_told_and_unknown_stays_unknown() -> None:
    found = listed(view("a", "x", context_tokens=100), view("b", "x", "y"), view("c", "x", context_tokens=300))
    assert [entry["max_model_len"] for entry in found] == [300, None]


def test_an_unhealthy_backend_may_come_back_and_counts() -> None:
    assert [entry["id"] for entry in listed(view("a", "x", healthy=False))] == ["x"]


def test_no_backend_no_models_and_no_addresses() -> None:
    assert listed() == []
    assert b"10.0.0.7" not in merged_models([view("secret-name", "x")])
