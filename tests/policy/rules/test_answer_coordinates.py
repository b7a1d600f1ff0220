"""The rule `answer_coordinates`: its words and what holds without it."""

from __future__ import annotations

import pytest

from gateway.policy.effective import Coordinates
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.policy.resolve import resolve
from gateway.policy.rules.answer_coordinates import RULE
from tests.policy.examples import policy_set, problems_of


@pytest.mark.parametrize("word", list(Coordinates))
def test_its_words(word: Coordinates) -> None:
    policies = policy_set(default=f"rules: {{answer_coordinates: {word}}}")
    found = resolve(policies, tenant=DEFAULT_TENANT, header_task=None, model="m", body_task=None)
    assert found.answer_coordinates is word


def test_another_word_is_a_problem() -> None:
    (problem,) = problems_of("rules: {answer_coordinates: maybe}")
    assert "answer_coordinates" in problem


def test_nothing_changes_without_it() -> None:
    assert RULE.default is Coordinates.MODEL
