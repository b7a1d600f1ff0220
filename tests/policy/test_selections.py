from __future__ import annotations

import re

import pytest

from gateway.policy.effective import FIRST, Selection, Several
from gateway.policy.node import ListNode, ScalarNode
from gateway.policy.selections import Selections
from gateway.policy.values import BadValue

KIND = Selections("sample", 2, 16)


@pytest.mark.parametrize(
    ("text", "value"),
    [("first", FIRST), ("reject", Selection(Several.REJECT)), ("sample:4", Selection(Several.MANY, 4, "sample"))],
)
def test_a_selection_is_read_and_shown_alike(text: str, value: Selection) -> None:
    assert KIND.parse(ScalarNode(1, text)) == value
    assert str(value) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("frist", "expected one of first, reject, sample:N, found 'frist'; did you mean first?"),
        ("all:4", "expected one of first, reject, sample:N"),
        ("many", "expected one of"),
        ("sample:1", "1 is out of range: N of sample:N is 2 to 16"),
        ("sample:17", "17 is out of range"),
        (4, "expected one of"),
    ],
)
def test_everything_else_is_refused_with_what_is_expected(text: str | int, words: str) -> None:
    with pytest.raises(BadValue, match=re.escape(words)):
        KIND.parse(ScalarNode(1, text))


def test_a_list_is_no_selection() -> None:
    with pytest.raises(BadValue):
        KIND.parse(ListNode(1, ()))


def test_the_schema_describes_it() -> None:
    assert KIND.schema() == {
        "anyOf": [{"enum": ["first", "reject"]}, {"type": "string", "pattern": "^sample:[0-9]{1,6}$"}]
    }
