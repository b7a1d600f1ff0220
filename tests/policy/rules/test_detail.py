from __future__ import annotations

from dataclasses import replace

from gateway.policy.rules.detail import RULE, detail_pixels
from tests.policy.examples import call, part, policy, policy_set
from tests.policy.test_resolve import ask

LEVELS = (("low", 4000),)


def test_levels_are_laid_over_each_other_and_can_be_forgotten() -> None:
    policies = policy_set(
        default="rules: {detail: {low: 512x512, high: 4MP}}",
        acme="tenant: acme\nrules: {detail: {high: engine}}\ntasks: {chat: {}, ocr: {detail: ignore}}",
    )
    assert ask(policies, header_task="chat").detail == (("high", None), ("low", 262_144))
    assert ask(policies, header_task="ocr").detail == ()


def test_a_level_without_pixels_has_no_cap_of_its_own() -> None:
    assert [detail_pixels(policy(detail=LEVELS), level) for level in ("low", "high", None)] == [4000, None, None]
    assert detail_pixels(policy(), "low") is None


def test_a_word_that_is_no_level_is_refused_where_the_field_means_something() -> None:
    assert RULE.declared is not None
    odd = call(part(0), replace(part(1), detail="ultra"))
    assert RULE.declared(policy(), odd) is None
    error = RULE.declared(policy(detail=LEVELS), odd)
    assert error is not None
    assert (error.part, error.rule) == (part(1).name, "detail")
    assert "'ultra' is not one of low, high, original, auto" in error.message
