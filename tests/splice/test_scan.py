from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.splice.scan import closing_quote, depth_and_containers, locate
from gateway.types import Pointer

Tree = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def every_pointer(tree: object, so_far: Pointer = ()) -> list[tuple[Pointer, object]]:
    found = [(so_far, tree)]
    if isinstance(tree, dict):
        found += [pair for key, value in tree.items() for pair in every_pointer(value, (*so_far, key))]
    if isinstance(tree, list):
        found += [pair for index, value in enumerate(tree) for pair in every_pointer(value, (*so_far, index))]
    return found


@given(Tree, st.booleans(), st.sampled_from([None, 1]))
def test_every_value_is_found_where_it_stands(tree: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(tree, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    expected = every_pointer(tree)
    found = locate(text, tuple(pointer for pointer, _ in expected))
    assert set(found) == {pointer for pointer, _ in expected}
    for pointer, value in expected:
        span = found[pointer].value
        assert json.loads(text[span.start : span.stop].decode("utf-8", "surrogatepass")) == value


@given(st.dictionaries(st.text(max_size=6), Tree, max_size=5), st.sampled_from([None, 2]))
def test_an_object_comes_with_its_members_in_order(tree: dict[str, object], indent: int | None) -> None:
    text = json.dumps(tree, indent=indent).encode()
    members = locate(text, ((),))[()].members
    assert members is not None
    assert [member.key for member in members] == list(tree)
    for member in members:
        assert text[member.key_start : member.key_start + 1] == b'"'
        assert json.loads(text[member.value.start : member.value.stop]) == tree[member.key]


def test_pointers_to_nothing_are_left_out() -> None:
    assert locate(b'{"a":[1,{"b":2}]}', (("a", 5), ("a", 1, "c"), ("a", "x"), ("z",), ("a", 0, "q"))) == {}


@pytest.mark.parametrize("spelling", [b'"\\u006dodel"', b'"mod\\u0065l"', b'"model"'])
def test_a_key_is_found_in_any_spelling(spelling: bytes) -> None:
    text = b'{"x":{"model":1}, ' + spelling + b' :  "m"}'
    span = locate(text, (("model",),))[("model",)].value
    assert text[span.start : span.stop] == b'"m"'


def test_strings_with_thousands_of_escapes_are_passed_over() -> None:
    hard = '"\\[{' * 3_000
    text = json.dumps({"a": [hard, {"b": hard}], "c": [[[]]], "last": 7}).encode()
    span = locate(text, (("last",),))[("last",)].value
    assert text[span.start : span.stop] == b"7"
    assert depth_and_containers(text, 100, 100) == (4, 6)


@given(Tree)
def test_depth_and_count_are_those_of_the_tree(tree: object) -> None:
    containers = [pointer for pointer, value in every_pointer(tree) if isinstance(value, dict | list)]
    depth, count = depth_and_containers(json.dumps(tree).encode(), 1_000, 1_000_000)
    assert count == len(containers)
    assert depth == max((len(pointer) + 1 for pointer in containers), default=0)


@given(st.binary(max_size=200))
def test_counting_ends_on_any_bytes(text: bytes) -> None:
    depth_and_containers(text, 50, 50)


def test_counting_stops_beyond_its_limits() -> None:
    assert depth_and_containers(b"[" * 1_000, 10, 1_000)[0] == 11
    assert depth_and_containers(b"[]," * 1_000, 10, 20)[1] == 21


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b'"', 0),
        (b'abc"', 3),
        (b'a\\"b"', 4),
        (b"abc", -1),
        (b"abc\\", -1),
        (b'\\\\"', 2),
        (b'\\"' * 9_000 + b'"', 18_000),
    ],
)
def test_the_closing_quote(rest: bytes, expected: int) -> None:
    assert closing_quote(rest, 0, len(rest)) == expected
