"""Walking through answers of any shape."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects import DIALECTS
from gateway.dialects.answers import number, objects
from gateway.types import Json

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "delta", "content", "text", "type", "output", "index", "response"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_objects_of_a_list_come_with_their_places() -> None:
    tree: Json = {"a": {"b": [{"x": 1}, 5, {"y": 2}]}}
    assert list(objects(tree, ("a", "b"))) == [(("a", "b", 0), {"x": 1}), (("a", "b", 2), {"y": 2})]
    assert list(objects(tree, ("a", "c"))) == list(objects([], ("a",))) == list(objects(None, ())) == []
    assert (number(3), number("3"), number(None)) == (3, 0, 0)


@given(st.dictionaries(st.sampled_from(["choices", "output", "content", "delta", "item", "part", "type"]), trees))
def test_no_shape_is_too_odd_for_any_dialect(tree: dict[str, Json]) -> None:
    for dialect in DIALECTS:
        for text in dialect.answer(tree).texts:
            value: Json = tree
            for step in text.pointer:
                value = value[step]  # type: ignore[index]  # the pointer leads somewhere, or this fails
            assert isinstance(value, str)
