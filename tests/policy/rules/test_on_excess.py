from __future__ import annotations

import pytest

from gateway.policy.effective import OnExcess
from gateway.policy.rules.on_excess import RULE
from gateway.policy.values import BadValue
from tests.policy.examples import BUILTIN, node


def test_it_is_a_treatment_and_refuses_nothing_itself() -> None:
    assert RULE.declared is None
    assert RULE.measured is None


def test_its_values() -> None:
    assert BUILTIN.on_excess == RULE.default
    assert RULE.kind.parse(node("reject")) == OnExcess.REJECT
    with pytest.raises(BadValue):
        RULE.kind.parse(node("drop"))
