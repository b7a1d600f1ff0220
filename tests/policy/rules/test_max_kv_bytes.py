from __future__ import annotations

import pytest

from gateway.policy.rule import Measured
from gateway.policy.rules.max_kv_bytes import RULE
from tests.policy.examples import estimate, node, policy


@pytest.mark.parametrize(
    ("limit", "held", "refused"),
    [(None, 10**9, False), (10**9, 10**9, False), (10**9, None, False), (10**9 - 1, 10**9, True)],
)
def test_a_known_price_above_the_limit_is_refused(limit: int | None, held: int | None, *, refused: bool) -> None:
    assert RULE.measured is not None
    error = RULE.measured(policy(max_kv_bytes=limit), Measured([], estimate(), kv_bytes=held))
    assert (error is not None) is refused
    if error is not None:
        assert "at least 1000000000 bytes of KV cache, the limit is 999999999" in error.message


def test_its_values() -> None:
    assert RULE.kind.parse(node("2GiB")) == 2**31
