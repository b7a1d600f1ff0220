from __future__ import annotations

import pytest

from gateway.policy.rules.background import RULE
from gateway.policy.values import BadValue
from tests.policy.examples import BUILTIN, node


def test_it_is_a_treatment_and_refuses_nothing_itself() -> None:
    assert RULE.declared is None
    assert RULE.measured is None


def test_its_values() -> None:
    assert BUILTIN.background == RULE.default
    assert RULE.kind.parse(node("[0, 0, 255]")) == (0, 0, 255)
    with pytest.raises(BadValue):
        RULE.kind.parse(node("[0, 0, 256]"))
