from __future__ import annotations

import pytest

from gateway.policy.effective import Mode
from gateway.policy.keys import Key
from gateway.policy.policyset import BUILTIN_TASKS, DEFAULT_TENANT, build_policy_set, builtin_policies
from gateway.types import TenantId
from tests.policy.examples import document, policy_set, set_problems

HASH = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32
ACME = TenantId("acme")


def test_without_files_everybody_is_the_default_tenant() -> None:
    policies = builtin_policies()
    assert list(policies.tenants) == [DEFAULT_TENANT]
    assert not policies.has_keys
    assert set(policies.tenants[DEFAULT_TENANT].tasks) == set(BUILTIN_TASKS)


def test_keys_lead_to_their_tenants() -> None:
    policies = policy_set(default=f'keys: ["{OTHER}"]', acme=f'tenant: acme\nkeys: ["{HASH}"]')
    assert policies.has_keys
    assert policies.keys == {HASH: (Key(HASH), ACME), OTHER: (Key(OTHER), DEFAULT_TENANT)}


def test_a_tenant_inherits_settings_and_joins_aliases() -> None:
    policies = policy_set(
        default="mode: shadow\nqueue_timeout_s: 3\nmodel_aliases: {fast: a, slow: b}",
        acme="tenant: acme\nqueue_timeout_s: 5\nmodel_aliases: {fast: c}",
    )
    acme = policies.tenants[ACME]
    assert acme.value("mode", Mode) is Mode.SHADOW
    assert acme.settings["queue_timeout_s"].value == 5.0
    assert acme.aliases == {"fast": "c", "slow": "b"}
    with pytest.raises(TypeError, match="mode holds Mode, not int"):
        acme.value("mode", int)


def test_the_nearest_list_of_tasks_counts() -> None:
    policies = policy_set(default="tasks: {chat: , ocr: }", acme="tenant: acme", other="tenant: other\ntasks: {chat: }")
    assert policies.tenants[ACME].tasks == ("chat", "ocr")
    assert policies.tenants[TenantId("other")].tasks == ("chat",)
    assert policies.tenants[DEFAULT_TENANT].tasks == ("chat", "ocr")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"a": "tenant: x", "b": "tenant: x"}, "b.yaml:1 tenant: tenant x has a file already: policies/a.yaml"),
        ({"a": "mode: shadow", "b": "mode: enforce"}, "b.yaml:1 tenant: everybody (no tenant) has a file already"),
        ({"a": "tenant: default"}, "a.yaml:1 tenant: this name is reserved"),
        (
            {"a": f'tenant: x\nkeys: ["{HASH}"]', "b": f'tenant: y\nkeys: ["{HASH}"]'},
            "b.yaml:2 keys: sha256:abababab... is listed already in policies/a.yaml:2 keys",
        ),
        (
            {"a": "tenant: x\ndefault_task: ocrr\ntasks: {ocr: }"},
            "a.yaml:2 default_task: ocrr is not among the tasks ocr; did you mean ocr?",
        ),
        (
            {"a": "tenant: x\ntasks: {ocr: }"},
            "a.yaml:1 default_task: not set, and chat (built-in default) is not among the tasks ocr",
        ),
        (
            {"a": "tenant: x\ntasks: {ocr: }", "default": "default_task: document"},
            "a.yaml:1 default_task: not set, and document (policies/default.yaml:1 default_task) is not among",
        ),
        (
            {"a": "tenant: x\nmodel_aliases: {fast: 'm@ocr'}"},
            "a.yaml:2 model_aliases.fast: the task stands behind the alias: write 'fast@ocr: m'",
        ),
        (
            {"a": "tenant: x\nmodel_aliases: {'fast@occr': m}"},
            "a.yaml:2 model_aliases.fast@occr: task occr is not among the tasks chat, ocr",
        ),
    ],
)
def test_mistakes_that_several_files_show(texts: dict[str, str], words: str) -> None:
    found = [str(problem) for problem in set_problems(**texts)]
    assert len(found) == 1
    assert words in found[0]


def test_the_order_of_documents_does_not_matter() -> None:
    texts = {"default": "mode: shadow", "acme": f'tenant: acme\nkeys: ["{HASH}"]', "b": "tenant: b"}
    documents = [document(text, f"policies/{name}.yaml") for name, text in texts.items()]
    assert build_policy_set(documents) == build_policy_set(reversed(documents))
