"""Configuration files: what is a number, and how complaints name their field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.hub.reading import ConfigProblem, Section, read_json

SECTION = read_json("config.json", '{"a": 3, "b": 2.0, "c": {"d": [1, 2], "e": ["x"], "f": true}, "n": null}')
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_fields_are_read_as_what_they_are() -> None:
    inner = SECTION.section("c")
    assert inner is not None
    assert (SECTION.whole("missing", "a"), SECTION.needed("b"), SECTION.whole("n")) == (3, 2, None)
    assert (inner.wholes("d"), inner.words("e"), inner.flag("f", default=False)) == ((1, 2), ("x",), True)
    assert (SECTION.has("a"), SECTION.has("n"), SECTION.section("n"), SECTION.text("n")) == (True, False, None, None)
    assert inner.named("d") == "config.json: c.d"


@pytest.mark.parametrize("text", ["", "[]", "nul", '{"a":', "[" * 100_000])
def test_what_is_no_object_of_json_is_refused(text: str) -> None:
    with pytest.raises(ConfigProblem, match=r"config\.json: "):
        read_json("config.json", text)


@given(JSON)
def test_any_value_is_either_read_or_complained_of(value: object) -> None:
    section = Section("config.json", {"x": value})
    readings: list[Callable[[str], object]] = [
        section.whole,
        section.words,
        section.wholes,
        section.section,
        section.text,
        _flag(section),
    ]
    for read in readings:
        complaint = _complaint(read)
        assert not complaint or complaint.startswith("config.json: x: must be ")


def _flag(section: Section) -> Callable[[str], object]:
    return lambda name: section.flag(name, default=True)


def _complaint(read: Callable[[str], object]) -> str:
    try:
        read("x")
    except ConfigProblem as problem:
        return str(problem)
    return ""
