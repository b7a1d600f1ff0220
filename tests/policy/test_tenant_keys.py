from __future__ import annotations

from dataclasses import fields

from gateway.policy.effective import EffectivePolicy, Mode, RuleValues
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.tenant_keys import KEYS_BY_NAME, TENANT_KEYS
from tests.policy.examples import policy_set, problems_of
from tests.policy.test_resolve import ask


def test_keys_are_unique_and_no_rule_has_the_same_name() -> None:
    assert len(KEYS_BY_NAME) == len(TENANT_KEYS)
    assert not set(KEYS_BY_NAME) & set(RULES_BY_KEY)


def test_every_field_beside_the_rules_has_its_key_or_is_told_by_the_request() -> None:
    told = {"tenant", "task", "task_reason", "model", "parameters", "reasons", "policy_version"}
    own = {field.name for field in fields(EffectivePolicy)} - {field.name for field in fields(RuleValues)}
    assert own - told == {key.field for key in TENANT_KEYS} & own


def test_a_task_may_have_a_mode_hosts_and_patience_of_its_own() -> None:
    policies = policy_set(
        default="mode: shadow\ntasks: {ocr: {hosts: none}, chat: {}}",
        acme="tenant: acme\nqueue_timeout_s: 3\ntasks: {ocr: {mode: enforce, queue_timeout_s: 120}, chat: {}}",
    )
    ocr, chat = ask(policies, header_task="ocr"), ask(policies, header_task="chat")
    assert (ocr.mode, ocr.hosts, ocr.queue_timeout_s) == (Mode.ENFORCE, (), 120.0)
    assert (chat.mode, chat.hosts, chat.queue_timeout_s) == (Mode.SHADOW, None, 3.0)
    assert ocr.reasons["mode"] == "policies/acme.yaml:3 tasks.ocr.mode"


def test_what_is_the_tenants_alone_has_no_place_in_a_task() -> None:
    assert problems_of("tasks: {ocr: {kv_tokens_in_flight: 5}}") == [
        "policies/acme.yaml:1 tasks.ocr.kv_tokens_in_flight: unknown key; it belongs at the top of the file"
    ]
