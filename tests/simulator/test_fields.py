from __future__ import annotations

import pytest

from gateway.simulator import fields
from gateway.simulator.fields import Json


@pytest.mark.parametrize(
    ("value", "expected"), [(3, 3), (3.0, 3), (3.5, None), (True, None), ("3", None), (None, None)]
)
def test_an_integer_is_neither_a_boolean_nor_a_text(value: Json, expected: int | None) -> None:
    assert fields.integer(value) == expected


@pytest.mark.parametrize(("value", "expected"), [(1, 1.0), (0.5, 0.5), (True, None), ("x", None)])
def test_a_number_is_no_boolean(value: Json, expected: float | None) -> None:
    assert fields.number(value) == expected


def test_a_value_of_another_type_gives_the_default() -> None:
    assert fields.text(1, "none") == "none"
    assert fields.flag("yes") is False
    assert fields.flag(None, default=True) is True
    assert fields.mapping([]) == {}
    assert fields.sequence({}) == []


@pytest.mark.parametrize(("value", "expected"), [("a", ("a",)), (["a", 1, "b"], ("a", "b")), (None, ())])
def test_texts_are_one_or_several(value: Json, expected: tuple[str, ...]) -> None:
    assert fields.texts(value) == expected
