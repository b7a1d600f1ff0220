"""The buckets rule: sizes, each once, smallest first."""

from __future__ import annotations

import pytest

from gateway.policy.rules.buckets import RULE
from gateway.policy.values import BadValue
from gateway.types import Size
from tests.policy.examples import BUILTIN, node


def test_without_the_rule_nothing_is_snapped() -> None:
    assert BUILTIN.buckets == RULE.default == ()


def test_sizes_are_read_and_put_in_order() -> None:
    assert RULE.kind.parse(node("[896x448, 448x448]")) == (Size(448, 448), Size(896, 448))
    assert RULE.kind.parse(node("[]")) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("448x448", "expected a list of sizes"),
        ("[448]", "expected a size such as 448x448"),
        ("[0x448]", "expected a size such as 448x448"),
        ("[448x448, 448x448]", "448x448 is listed twice"),
    ],
)
def test_mistakes_are_told(text: str, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        RULE.kind.parse(node(text))
