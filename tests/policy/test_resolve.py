from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import NotPermitted
from gateway.policy.effective import CacheSalt, EffectivePolicy, EngineFields, FieldAction, Mode
from gateway.policy.policyset import PolicySet, build_policy_set
from gateway.policy.resolve import resolve
from gateway.types import OutputFormat, TenantId
from tests.policy.examples import document, policy_set

DEFAULT_TEXT = """\
default_task: chat
model_aliases: {fast: Qwen/Qwen3-VL-8B}
rules:
  max_images: 10
  jpeg_quality: 90
tasks:
  chat:
  ocr:
    max_images: 20
    output: png
models:
  "Qwen/*":
    max_pixels: 1000000
"""
ACME_TEXT = """\
tenant: acme
mode: shadow
kv_tokens_in_flight: 5000
queue_timeout_s: 2
hosts: none
isolation:
  cache_salt: tenant
engine_fields: allow
model_aliases: {"fast@ocr": Qwen/Qwen2.5-VL-7B}
rules:
  max_images: 4
models:
  "*":
    jpeg_quality: 70
  "Qwen/Qwen3*":
    jpeg_quality: 80
"""


def ask(
    policies: PolicySet | None = None,
    *,
    tenant: str = "acme",
    header_task: str | None = None,
    model: str | None = "m",
    body_task: str | None = None,
) -> EffectivePolicy:
    return resolve(
        policies or policy_set(default=DEFAULT_TEXT, acme=ACME_TEXT),
        tenant=TenantId(tenant),
        header_task=header_task,
        model=model,
        body_task=body_task,
    )


def test_tenant_wide_values_are_typed() -> None:
    found = ask()
    assert found.mode is Mode.SHADOW
    assert found.kv_tokens_in_flight == 5000
    assert found.queue_timeout_s == 2.0
    assert found.hosts == ()
    assert found.cache_salt is CacheSalt.TENANT
    assert found.engine_fields == EngineFields(FieldAction.ALLOW)
    assert found.reasons["isolation.cache_salt"] == "policies/acme.yaml:7 isolation.cache_salt"


def test_the_more_particular_document_wins_and_says_why() -> None:
    found = ask(header_task="ocr", model="Qwen/Qwen3-VL-8B")
    assert (found.max_images, found.reasons["max_images"]) == (4, "policies/acme.yaml:11 rules.max_images")
    assert (found.output, found.reasons["output"]) == (OutputFormat.PNG, "policies/default.yaml:10 tasks.ocr.output")
    assert (found.max_pixels, found.reasons["max_pixels"]) == (
        1_000_000,
        "policies/default.yaml:13 models.Qwen/*.max_pixels",
    )
    assert found.reasons["background"] == "built-in default"


def test_of_matching_models_the_more_literal_wins() -> None:
    assert ask(model="Qwen/Qwen3-VL-8B").jpeg_quality == 80
    assert ask(model="Qwen/Qwen2.5-VL-7B").jpeg_quality == 70
    assert ask(model=None).jpeg_quality == 90


def test_within_a_document_tasks_win_over_rules() -> None:
    assert ask(tenant="default", header_task="ocr").max_images == 20
    assert ask(tenant="default").max_images == 10


@pytest.mark.parametrize(
    ("header", "model", "body", "task", "reason"),
    [
        ("ocr", "m@chat", "chat", "ocr", "header x-vlmgw-task"),
        (" ocr ", "m", None, "ocr", "header x-vlmgw-task"),
        (None, "m@ocr", "chat", "ocr", "model alias m@ocr"),
        ("", "m", "ocr", "ocr", "metadata of the body"),
        (None, "m", None, "chat", "default_task: policies/default.yaml:1 default_task"),
        (None, None, "", "chat", "default_task: policies/default.yaml:1 default_task"),
    ],
)
def test_the_first_that_speaks_chooses_the_task(
    header: str | None, model: str | None, body: str | None, task: str, reason: str
) -> None:
    found = ask(header_task=header, model=model, body_task=body)
    assert (found.task, found.task_reason) == (task, reason)


@pytest.mark.parametrize(("header", "body"), [("translate", None), (None, "translate")])
def test_an_unknown_task_is_refused_with_the_allowed_ones(header: str | None, body: str | None) -> None:
    with pytest.raises(NotPermitted) as caught:
        ask(header_task=header, body_task=body)
    assert caught.value.message == "Task 'translate' is not among those allowed here: chat, ocr."


@pytest.mark.parametrize(
    ("model", "served", "task"),
    [
        ("fast", "Qwen/Qwen3-VL-8B", "chat"),
        ("fast@ocr", "Qwen/Qwen2.5-VL-7B", "ocr"),
        ("fast@chat", "Qwen/Qwen3-VL-8B", "chat"),
        ("real@20240229", "real@20240229", "chat"),
        ("@ocr", "@ocr", "chat"),
        ("x@ocr", "x", "ocr"),
    ],
)
def test_aliases_are_followed_and_other_names_left_alone(model: str, served: str, task: str) -> None:
    found = ask(model=model)
    assert (found.model, found.task) == (served, task)


def test_a_tenant_that_a_reload_removed_is_refused() -> None:
    with pytest.raises(NotPermitted):
        ask(tenant="gone")


def test_what_was_resolved_is_found_again() -> None:
    policies = policy_set(default=DEFAULT_TEXT)
    assert ask(policies, tenant="default") is ask(policies, tenant="default")


def test_random_model_names_do_not_fill_the_memory() -> None:
    policies = policy_set(default=DEFAULT_TEXT)
    for number in range(4_200):
        ask(policies, tenant="default", model=f"random-{number}")
    assert len(policies.resolved) == 4_200 - 4_096


def test_the_version_follows_values_not_places() -> None:
    one = policy_set(a="tenant: a\nrules: {max_images: 3}")
    same = policy_set(b="# moved\ntenant: a\ntasks: {chat: {max_images: 3}}")
    other = policy_set(a="tenant: a\nrules: {max_images: 4}")
    versions = [ask(policies, tenant="a").policy_version for policies in (one, same, other)]
    assert versions[0] == versions[1] != versions[2]


RULES = st.dictionaries(st.sampled_from(["max_images", "max_pixels", "max_image_bytes"]), st.integers(5000, 9000))
FILE = st.fixed_dictionaries(
    {"tasks": st.fixed_dictionaries({"chat": RULES, "ocr": RULES})},
    optional={
        "rules": RULES,
        "models": st.dictionaries(st.sampled_from(["m", "m*", "*", "*m"]), RULES),
        "model_aliases": st.dictionaries(st.sampled_from(["m", "n@ocr"]), st.sampled_from(["m1", "m2"])),
    },
)


def backwards(value: object) -> object:
    """The same mapping with all keys written in the opposite order."""
    if not isinstance(value, dict):
        return value
    return {key: backwards(value[key]) for key in reversed(list(value))}


@given(st.lists(FILE, min_size=3, max_size=3), st.sampled_from(["chat", "ocr"]), st.sampled_from(["m", "n@ocr", "x"]))
def test_resolution_does_not_depend_on_the_order_of_files_or_keys(
    files: list[dict[str, object]], task: str, model: str
) -> None:
    named = list(zip(({}, {"tenant": "acme"}, {"tenant": "other"}), files, strict=True))
    texts = [json.dumps(head | body) for head, body in named]
    turned = [json.dumps(backwards(head | body)) for head, body in named][::-1]
    names = ["policies/0.yaml", "policies/1.yaml", "policies/2.yaml"]
    one, problems = build_policy_set([document(*pair) for pair in zip(texts, names, strict=True)])
    two, _ = build_policy_set([document(*pair) for pair in zip(turned, names[::-1], strict=True)])
    assert not problems
    for tenant in ("default", "acme", "other"):
        found = [ask(policies, tenant=tenant, header_task=task, model=model) for policies in (one, two)]
        assert found[0] == found[1]
