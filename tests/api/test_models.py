"""GET /v1/models: what a tenant may name, once each, in the form its client reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.api.models import models_answer, wants_anthropic
from gateway.errors import ModelNotFound
from gateway.types import BackendName, BackendView, EngineKind
from tests.journey.fakes import head

NAMES = {"org/big": "org/big", "fast": "org/big", "small": "small"}
ANTHROPIC = ("anthropic-version", "2023-06-01")


def view(name: str, *models: str, **known: Any) -> BackendView:
    return BackendView(BackendName(name), "http://10.0.0.7", EngineKind.GENERIC, models=models, **known)


VIEWS = [view("secret-name", "org/big", context_tokens=100), view("b", "org/big", "small"), view("c", "org/big",
         context_tokens=300, healthy=False)]  # fmt: skip


def told(*headers: tuple[str, str], path: str = "/v1/models") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(models_answer(head(*headers, path=path), NAMES, VIEWS))
    return found


def test_openais_form_with_aliases_and_the_largest_context() -> None:
    document = told()
    assert document["object"] == "list"
    entries = {entry["id"]: entry for entry in document["data"]}
    assert list(entries) == list(NAMES)
    assert {entry["object"] for entry in document["data"]} == {"model"}
    assert (entries["fast"]["root"], entries["fast"]["max_model_len"]) == ("org/big", 300)
    assert entries["small"]["max_model_len"] is None


def test_anthropics_form_for_its_sdk() -> None:
    document = told(ANTHROPIC)
    assert (document["first_id"], document["last_id"], document["has_more"]) == ("org/big", "small", False)
    assert {entry["type"] for entry in document["data"]} == {"model"}
    assert told(ANTHROPIC, path="/v1/models/fast")["display_name"] == "fast"
    assert wants_anthropic(head(ANTHROPIC))
    assert not wants_anthropic(head())


@pytest.mark.parametrize("path", ["/v1/models/org/big", "/v1/models/org%2Fbig"])
def test_one_model_by_its_name(path: str) -> None:
    assert told(path=path)["id"] == "org/big"


def test_what_is_not_there_and_what_may_not_be_seen_are_alike() -> None:
    with pytest.raises(ModelNotFound) as caught:
        told(path="/v1/models/other")
    assert caught.value.message == "The model 'other' is not served here."


def test_no_model_no_entries_and_no_addresses() -> None:
    assert json.loads(models_answer(head(path="/v1/models"), {}, VIEWS))["data"] == []
    assert json.loads(models_answer(head(ANTHROPIC, path="/v1/models"), {}, []))["first_id"] is None
    assert b"10.0.0.7" not in models_answer(head(path="/v1/models"), NAMES, VIEWS)
