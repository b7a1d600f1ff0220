from __future__ import annotations

from gateway.policy.effective import Truncated
from gateway.policy.rules.truncated import RULE
from tests.policy.examples import BUILTIN, node


def test_half_a_picture_is_refused_unless_a_policy_says_otherwise() -> None:
    assert BUILTIN.truncated is Truncated.REJECT
    assert RULE.kind.parse(node("salvage")) is Truncated.SALVAGE
