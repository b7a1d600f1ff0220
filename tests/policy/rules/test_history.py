from __future__ import annotations

from gateway.policy.effective import History
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.policy.rules.history import RULE
from tests.policy.examples import BUILTIN, policy_set
from tests.policy.test_resolve import ask


def test_it_is_off_by_default_and_refuses_nothing_itself() -> None:
    assert BUILTIN.history is RULE.default is None
    assert RULE.declared is None
    assert RULE.measured is None


def test_a_task_may_have_its_own_or_none() -> None:
    policies = policy_set(
        default="rules: {history: {trigger: {images: 20}}}\ntasks: {chat: {history: none}, ocr: {}}",
    )
    assert ask(policies, tenant=DEFAULT_TENANT, header_task="ocr").history == History(
        images=20, batch=10, keep_newest=4
    )
    assert ask(policies, tenant=DEFAULT_TENANT, header_task="chat").history is None
