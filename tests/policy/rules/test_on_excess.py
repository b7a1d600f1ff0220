from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from gateway.policy.effective import Excess, OnExcess
from gateway.policy.mappings import EXCESS_ACTIONS
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.rules.on_excess import RULE
from gateway.policy.values import BadValue
from gateway.types import TenantId
from tests.policy.examples import BUILTIN, node, policy_set
from tests.policy.test_resolve import ask


def test_it_is_a_treatment_and_refuses_nothing_itself() -> None:
    assert RULE.declared is None
    assert RULE.measured is None


def test_every_action_belongs_to_a_rule_that_knows_it() -> None:
    assert {field.name for field in fields(OnExcess)} == set(EXCESS_ACTIONS)
    assert set(EXCESS_ACTIONS) <= set(RULES_BY_KEY)
    assert all(action in EXCESS_ACTIONS[rule] for rule, action in asdict(BUILTIN.on_excess).items())


def test_a_word_holds_for_every_rule_that_knows_it() -> None:
    found = RULE.kind.parse(node("drop_oldest"))
    assert isinstance(found, dict)
    assert {"max_images", "max_image_tokens"} <= set(found)
    assert "max_pixels" not in found
    assert set(found.values()) == {Excess.DROP_OLDEST}


def test_what_is_not_named_stays_as_inherited() -> None:
    policies = policy_set(
        default="rules: {on_excess: reject}",
        acme="tenant: acme\nrules: {on_excess: {max_pixels: shrink}}\ntasks: {chat: {on_excess: drop_oldest}, ocr: {}}",
    )
    ocr, chat = ask(policies, header_task="ocr").on_excess, ask(policies, header_task="chat").on_excess
    assert (ocr.max_pixels, ocr.max_images) == (Excess.SHRINK, Excess.REJECT)
    assert (chat.max_pixels, chat.max_images) == (Excess.SHRINK, Excess.DROP_OLDEST)
    assert ask(policies, tenant=TenantId("default")).on_excess.max_pixels is Excess.REJECT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("drop", "expected one of shrink, drop_oldest, reject, found 'drop'"),
        ("{max_image: reject}", "unknown key; did you mean max_images?"),
        ("{max_images: shrink}", "expected one of drop_oldest, reject, found 'shrink'"),
        ("{max_images: reject, max_images: drop_oldest}", "written twice, first in line 1"),
        ("[reject]", "found a list"),
    ],
)
def test_a_mistake_is_explained(text: str, words: str) -> None:
    with pytest.raises(BadValue, match=words.replace("?", r"\?")):
        RULE.kind.parse(node(text))
