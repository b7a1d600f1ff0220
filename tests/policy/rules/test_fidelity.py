from __future__ import annotations

import pytest

from gateway.policy.rules.fidelity import RULE
from gateway.policy.values import BadValue
from gateway.types import Fidelity
from tests.policy.examples import BUILTIN, node


def test_it_is_a_treatment_and_refuses_nothing_itself() -> None:
    assert RULE.declared is None
    assert RULE.measured is None


def test_its_values() -> None:
    assert BUILTIN.fidelity is RULE.default is Fidelity.EXACT
    assert RULE.kind.parse(node("fast")) is Fidelity.FAST
    with pytest.raises(BadValue):
        RULE.kind.parse(node("faster"))
