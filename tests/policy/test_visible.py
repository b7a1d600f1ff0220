"""Which models a tenant may name, and which a list shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ModelNotFound
from gateway.policy.effective import EffectivePolicy
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet
from gateway.policy.resolve import resolve
from gateway.policy.visible import ModelAlias, hidden_adapter, is_allowed, visible_models
from gateway.types import Json, TaskName
from tests.policy.examples import policy_set

FAST = ModelAlias("org/big", TaskName("ocr"), ((("max_tokens",), "64"),))
ALIASES = {"fast": FAST, "gone": ModelAlias("nobody")}


def policies(text: str = "{}") -> PolicySet:
    return replace(policy_set(default=text), aliases=ALIASES)


def resolved(text: str, model: str | None, body_task: str | None = None) -> EffectivePolicy:
    return resolve(policies(text), tenant=DEFAULT_TENANT, model=model, header_task=None, body_task=body_task)


@pytest.mark.parametrize(
    ("allowed", "name", "is_so"),
    [(None, None, True), (None, "x", True), (("x*",), "xyz", True), (("x*",), "y", False), (("x*",), None, False)],
)
def test_patterns(allowed: tuple[str, ...] | None, name: str | None, is_so: bool) -> None:
    assert is_allowed(allowed, name) is is_so


def test_a_list_shows_what_leads_somewhere() -> None:
    shown = visible_models(None, ["org/big", "b", "b"], ALIASES, {"mine": "fast", "lost": "gone"})
    assert shown == {"org/big": "org/big", "b": "b", "fast": "org/big", "mine": "org/big"}
    assert visible_models(("fast",), ["org/big", "b"], ALIASES, {"mine": "fast", "other": "b"}) == {
        "fast": "org/big",
        "mine": "org/big",
    }


def test_an_alias_names_the_served_model_its_task_and_its_parameters() -> None:
    found = resolved("{}", "fast")
    assert (found.model, found.task, found.parameters) == ("org/big", "ocr", FAST.parameters)
    assert found.task_reason == "models.fast.task"
    assert resolved("{}", "org/big").parameters == ()


def test_a_request_and_the_tenants_own_aliases_come_before() -> None:
    assert resolved("{}", "fast", body_task="document").task == "document"
    found = resolved("model_aliases: {mine: fast}", "mine@document")
    assert (found.model, found.task) == ("org/big", "document")
    assert resolved("tasks: {chat: {}}", "fast").task == "chat", "a task the tenant does not have is not chosen"


def test_what_is_not_allowed_is_not_there() -> None:
    text = "allowed_models: [fast, 'small-*']\nmodel_aliases: {mine: fast, bad: org/big}"
    for model in ("fast", "mine", "small-1", "small-1@ocr"):
        assert resolved(text, model).allowed_models == ("fast", "small-*")
    for other in ("org/big", "bad", "gone", None):
        with pytest.raises(ModelNotFound) as caught:
            resolved(text, other)
        assert caught.value.part == "model"
        assert "small" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "hidden"),
    [
        (None, None), ("mine", None), ("theirs", "theirs"), ("a", None), (["mine", None], None),
        (["mine", "theirs"], "theirs"), ([["mine"]], "lora_path"), ({"theirs": 1}, "lora_path"), (1, "lora_path"),
    ],
)  # fmt: skip
def test_adapters_are_models_that_have_to_be_allowed(given: Json, hidden: str | None) -> None:
    assert hidden_adapter(("m", "mine", "m:a"), "m", given) == hidden
    assert hidden_adapter(None, "m", given) is None
