"""The rule `disclosure`: its words and what holds without it."""

from __future__ import annotations

import pytest

from gateway.policy.effective import Disclosure
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.policy.resolve import resolve
from gateway.policy.rules.disclosure import RULE
from tests.policy.examples import policy_set, problems_of


@pytest.mark.parametrize("word", list(Disclosure))
def test_its_words(word: Disclosure) -> None:
    policies = policy_set(default=f"rules: {{disclosure: {word}}}")
    found = resolve(policies, tenant=DEFAULT_TENANT, header_task=None, model="m", body_task=None)
    assert found.disclosure is word


def test_another_word_is_a_problem() -> None:
    (problem,) = problems_of("rules: {disclosure: maybe}")
    assert "disclosure" in problem


def test_nothing_changes_without_it() -> None:
    assert RULE.default is Disclosure.HEADERS
