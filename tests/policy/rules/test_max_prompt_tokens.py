from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_prompt_tokens import RULE
from tests.policy.examples import estimate, policy


def test_only_the_lower_bound_refuses() -> None:
    assert RULE.measured is not None
    measured = Measured([], estimate(text=100, image_tokens=0))  # between 50 and 200 tokens
    assert RULE.measured(policy(max_prompt_tokens=50), measured) is None
    assert RULE.measured(policy(max_prompt_tokens=None), measured) is None
    error = RULE.measured(policy(max_prompt_tokens=49), measured)
    assert error is not None
    assert error.message == "The prompt needs at least 50 tokens, the limit is 49."
