from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.splice.edit import (
    InsertAfter,
    Operation,
    RemoveMember,
    SetMember,
    SetString,
    SetValue,
    Spliced,
    Wrap,
    edit,
    rename_model,
    splice,
)
from gateway.splice.skeleton import cut


def spliced(body: bytes, operations: list[Operation], start: int = 0, stop: int | None = None) -> Spliced:
    end = len(body) if stop is None else stop
    view = memoryview(body)
    edits = edit(cut(body, start, end), operations)
    return splice(lambda first, last: view[first:last], start, end, edits)


def result(body: bytes, *operations: Operation) -> bytes:
    made = spliced(body, list(operations))
    joined = b"".join(made.chunks)
    assert made.byte_count == len(joined)
    return joined


Keys = st.sampled_from(["a", "b", "uuid", "caf\u00e9", 'q"u', "model"])
Leaves = st.integers() | st.text(max_size=5) | st.builds(lambda size: "x" * size, st.integers(500, 530)) | st.none()
Values = st.recursive(
    Leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(Keys, inner, max_size=4), max_leaves=10
)
Objects = st.dictionaries(Keys, Values, max_size=5)


def objects_in(tree: Any, pointer: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [pointer] if isinstance(tree, dict) else []
    if isinstance(tree, dict | list):
        for step, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            found += objects_in(value, (*pointer, step))
    return found


def at(tree: Any, pointer: tuple[str | int, ...]) -> Any:
    for step in pointer:
        tree = tree[step]
    return tree


@given(Objects, st.sampled_from([None, 0, 2]), st.booleans())
def test_editing_nothing_gives_the_same_bytes(tree: Any, indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(tree, indent=indent, ensure_ascii=ascii_only).encode()
    made = spliced(body, [])
    assert b"".join(made.chunks) == body
    assert len(made.chunks) == 1


@given(st.data(), Objects, st.sampled_from([None, 0, 2]))
def test_members_set_and_removed_read_as_if_done_to_the_tree(
    data: st.DataObject, tree: Any, indent: int | None
) -> None:
    body = json.dumps(tree, indent=indent, ensure_ascii=False).encode()
    pointer = data.draw(st.sampled_from(objects_in(tree)))
    expected = copy.deepcopy(tree)
    operations: list[Operation] = []
    for key in data.draw(st.lists(Keys, max_size=6)):
        if data.draw(st.booleans()):
            operations.append(RemoveMember(pointer, key))
            at(expected, pointer).pop(key, None)
        else:
            value = data.draw(st.integers(0, 9))
            operations.append(SetMember(pointer, key, str(value).encode()))
            at(expected, pointer)[key] = value
    assert json.loads(result(body, *operations)) == expected


@given(st.data(), Objects, st.sampled_from([None, 2]))
def test_only_the_spans_change(data: st.DataObject, tree: Any, indent: int | None) -> None:
    body = json.dumps(tree, indent=indent).encode()
    pointer = data.draw(st.sampled_from(objects_in(tree)))
    operations: list[Operation] = [RemoveMember(pointer, "uuid"), SetMember(pointer, "a", b"1")]
    edits = edit(cut(body, 0, len(body)), operations)
    made = b"".join(splice(lambda first, last: memoryview(body)[first:last], 0, len(body), edits).chunks)
    old = new = 0
    for each in edits:
        kept = each.span.start - old
        assert body[old : each.span.start] == made[new : new + kept]
        new += kept + sum(len(chunk) for chunk in each.chunks)
        old = each.span.stop
    assert body[old:] == made[new:]


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    [
        (b'{"a":1}', "a", b"{}"),
        (b'{ "a" : 1 }', "a", b"{  }"),
        (b'{"a":1,"b":2}', "a", b'{"b":2}'),
        (b'{"a":1,"b":2}', "b", b'{"a":1}'),
        (b'{"a":1 , "b":2 ,"c":3}', "b", b'{"a":1 , "c":3}'),
        (b'{"a":1 , "b":[2] }', "b", b'{"a":1 }'),
        (b'{"a":1}', "z", b'{"a":1}'),
    ],
)
def test_a_removed_member_takes_one_comma_along(body: bytes, key: str, expected: bytes) -> None:
    assert result(body, RemoveMember((), key)) == expected


def test_new_members_go_to_the_end() -> None:
    assert result(b'{"a":1 }', SetMember((), "b", b"2"), SetMember((), "c", b"3")) == b'{"a":1,"b":2,"c":3 }'
    assert result(b"{ }", SetMember((), "b", b"2")) == b'{"b":2 }'
    assert result(b'{"a":1,"b":2}', RemoveMember((), "b"), SetMember((), "c", b"3")) == b'{"a":1,"c":3}'
    assert result(b'{"a":1}', RemoveMember((), "a"), SetMember((), "c", b"3")) == b'{"c":3}'


def test_values_are_replaced_where_they_stand() -> None:
    body = b'{"model" : "big", "n":[1, 22 ,3]}'
    assert result(body, rename_model('sm"all')) == b'{"model" : "sm\\"all", "n":[1, 22 ,3]}'
    assert result(body, SetValue(("n", 1), (b"[", b"5", b"]"))) == b'{"model" : "big", "n":[1, [5] ,3]}'
    assert result(body, SetString(("n", 0), b"x")) == b'{"model" : "big", "n":["x", 22 ,3]}'


def test_a_long_string_is_replaced_without_a_scan() -> None:
    body = b'{"a":"' + b"x" * 5_000 + b'","b":1}'
    assert result(body, SetString(("a",), b"y")) == b'{"a":"y","b":1}'


def test_a_bare_image_url_is_wrapped_and_its_part_completed() -> None:
    source = b"data:image/png;base64," + b"A" * 600
    body = b'{"m":[{"image_url":"' + source + b'"}]}'
    made = result(body, Wrap(("m", 0, "image_url"), b'{"url":', b"}"), SetMember(("m", 0), "type", b'"image_url"'))
    assert made == b'{"m":[{"image_url":{"url":"' + source + b'"},"type":"image_url"}]}'


def test_the_body_is_viewed_not_copied() -> None:
    body = b'{"a":"' + b"x" * 5_000 + b'","b":"old","c":"' + b"y" * 5_000 + b'"}'
    made = spliced(body, [SetString(("b",), b"new")])
    views = [chunk for chunk in made.chunks if isinstance(chunk, memoryview)]
    assert len(views) == 2
    assert all(view.obj is body for view in views)


def test_a_body_inside_a_larger_buffer() -> None:
    body = b'###{"a":"' + b"x" * 600 + b'","b":1}###'
    made = spliced(body, [SetMember((), "b", b"2"), SetString(("a",), b"y")], 3, len(body) - 3)
    assert b"".join(made.chunks) == b'{"a":"y","b":2}'


def test_the_later_operation_on_a_member_counts() -> None:
    assert result(b'{"a":1}', RemoveMember((), "a"), SetMember((), "a", b"2")) == b'{"a":2}'
    assert result(b'{"a":1}', SetMember((), "a", b"2"), RemoveMember((), "a")) == b"{}"


@pytest.mark.parametrize(
    "operations",
    [
        [SetString(("z",), b"")],
        [SetMember(("b",), "k", b"1")],
        [SetMember(("b", 0), "k", b"1")],
        [RemoveMember((), "a"), SetString(("a", "x"), b"y")],
        [SetValue(("a",), (b"1",)), SetMember(("a",), "y", b"2")],
    ],
)
def test_operations_that_cannot_be_meant_are_bugs(operations: list[Operation]) -> None:
    with pytest.raises(ValueError, match=r"no (value|object)|inside"):
        spliced(b'{"a":{"x":1},"b":[1]}', operations)


def test_hostile_strings_do_not_move_an_edit() -> None:
    tree = {"t": '\\"},{"model":"evil"' * 200, "model": "a", "u": "\\" * 700, "v": '"' * 700}
    body = json.dumps(tree).encode()
    assert json.loads(result(body, rename_model("b"))) == {**tree, "model": "b"}


def test_further_elements_stand_behind_their_place_in_order() -> None:
    body = b'{"a":[{"b":1}, 2]}'
    inserted = result(
        body, InsertAfter(("a", 0), (b"3", b"4")), SetMember(("a", 0), "c", b"5"), InsertAfter(("a", 0), (b"6",))
    )
    assert json.loads(inserted) == {"a": [{"b": 1, "c": 5}, 34, 6, 2]}
    with pytest.raises(ValueError, match="no value"):
        result(body, InsertAfter(("a", 7), (b"1",)))
