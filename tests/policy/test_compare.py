from __future__ import annotations

from gateway.policy.compare import differences, effective_policies
from tests.policy.examples import policy_set

ACME = "tenant: acme\nrules: {max_images: 3}\nmodels: {'Qwen/*': {max_images: 2}, 'x*': {max_images: 3}}"


def test_every_place_once_and_models_where_they_change_something() -> None:
    found = list(effective_policies(policy_set(acme=ACME, default="tasks: {chat: {}}")))
    assert [(each.tenant, each.task, each.model) for each in found] == [
        ("acme", "chat", ""),
        ("acme", "chat", "Qwen/*"),
        ("acme", "chat", "x*"),
        ("default", "chat", ""),
    ]
    assert found[1].values["max_images"].value == 2
    assert found[0].values["isolation.cache_salt"].value == "none"
    assert found[0].values["default_task"].value == "chat"


def test_a_tenant_that_may_name_some_models_only_is_shown_whole() -> None:
    """Whoever looks names no model, and a rule may be for models that the tenant may not name."""
    found = list(
        effective_policies(policy_set(acme=f"allowed_models: ['Qwen/Qwen3*']\n{ACME}", default="tasks: {chat: {}}"))
    )
    assert [(each.task, each.model) for each in found if each.tenant == "acme"] == [
        ("chat", ""), ("chat", "Qwen/*"), ("chat", "x*"),
    ]  # fmt: skip
    assert found[0].values["allowed_models"].value == ["Qwen/Qwen3*"]


def test_the_same_set_differs_in_nothing() -> None:
    assert list(differences(policy_set(acme=ACME), policy_set(acme=ACME))) == []


def test_values_count_not_the_lines_they_stand_in() -> None:
    moved = policy_set(acme="# a comment\n" + ACME)
    assert list(differences(policy_set(acme=ACME), moved)) == []


def test_a_pattern_that_only_one_set_has_is_held_against_the_others_rules() -> None:
    (found,) = differences(
        policy_set(acme="tenant: acme\ntasks: {chat: {}}"),
        policy_set(acme="tenant: acme\ntasks: {chat: {}}\nmodels: {m: {max_images: 9}}"),
    )
    assert (found.model, found.key) == ("m", "max_images")
    assert found.old is not None
    assert found.new is not None
    assert (found.old.value, found.new.value) == (100, 9)


def test_a_tenant_that_is_new_or_gone_is_one_difference_for_each_task() -> None:
    two = policy_set(acme="tenant: acme\ntasks: {chat: {}, ocr: {}}")
    gone = list(differences(two, policy_set(default="mode: enforce")))
    assert [(each.task, each.key, each.old is None, each.new is None) for each in gone] == [
        ("chat", "", False, True),
        ("ocr", "", False, True),
    ]
    assert all(each.old is None for each in differences(policy_set(default="mode: enforce"), two))
