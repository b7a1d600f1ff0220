from __future__ import annotations

import pytest

from gateway.policy.rule import Measured
from gateway.policy.rules.max_kv_tokens import RULE
from tests.policy.examples import estimate, policy


@pytest.mark.parametrize(("limit", "refused"), [(None, False), (284, False), (283, True)])
def test_only_the_lower_bound_refuses(limit: int | None, *, refused: bool) -> None:
    assert RULE.measured is not None
    error = RULE.measured(policy(max_kv_tokens=limit), Measured([], estimate()))
    assert (error is not None) is refused
    if error is not None:
        assert "at least 284 tokens of KV cache, the limit is 283" in error.message
