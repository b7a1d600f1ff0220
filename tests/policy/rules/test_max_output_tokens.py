from __future__ import annotations

from dataclasses import replace

from gateway.policy.rules.max_output_tokens import RULE
from tests.policy.examples import call, policy


def message(limit: int | None, asked: int | None, choices: int = 1) -> str | None:
    assert RULE.declared is not None
    error = RULE.declared(policy(max_output_tokens=limit), call(output_limit_tokens=asked, choices=choices))
    return None if error is None else error.message


def test_all_choices_count_together() -> None:
    assert message(100, 50, choices=2) is None
    assert message(99, 50, choices=2) == "The request asks for 100 output tokens, the limit is 99."


def test_a_request_that_sets_no_limit_asks_for_all() -> None:
    assert message(None, None) is None
    assert message(16, None) == "The request sets no output limit, the policy asks for one of at most 16 tokens."


def test_the_field_that_asks_for_too_much_is_named() -> None:
    assert RULE.declared is not None
    for asked in (None, 50):
        request = replace(call(output_limit_tokens=asked), output_limit_field="max_completion_tokens")
        error = RULE.declared(policy(max_output_tokens=5), request)
        assert error is not None
        assert (error.part, error.rule) == ("max_completion_tokens", "max_output_tokens")
