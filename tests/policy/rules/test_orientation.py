from __future__ import annotations

import pytest

from gateway.policy.effective import Orientation
from gateway.policy.rules.orientation import RULE
from gateway.policy.values import BadValue
from tests.policy.examples import BUILTIN, node


def test_its_values() -> None:
    assert BUILTIN.orientation is RULE.default is Orientation.NORMALISE
    assert RULE.kind.parse(node("preserve")) is Orientation.PRESERVE
    with pytest.raises(BadValue, match="did you mean normalise"):
        RULE.kind.parse(node("normalize"))
