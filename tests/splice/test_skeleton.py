from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import InvalidRequest, NotJson, TooComplex
from gateway.splice.skeleton import LONG_STRING_BYTES, MAX_DEPTH, OFF_LOOP, Limits, Skeleton, cut
from gateway.types import LongString


def whole(body: bytes) -> Skeleton:
    return cut(body, 0, len(body))


def filled_in(value: Any, body: bytes) -> Any:
    """The tree with every long string read from the body."""
    if isinstance(value, LongString):
        return json.loads(body[value.span.start - 1 : value.span.stop + 1].decode())
    if isinstance(value, dict):
        return {key: filled_in(each, body) for key, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, body) for each in value]
    return value


def long_strings(value: Any) -> Iterator[LongString]:
    if isinstance(value, LongString):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from long_strings(each)


Awkward = st.text(alphabet='a"\\\n/\u00e9\u20ac\U0001f600 ,:[]{}', max_size=40)
Strings = st.one_of(
    Awkward,
    st.builds(lambda piece, times: piece * times, Awkward, st.integers(1, 80)),
    st.builds(lambda size: "A" * size, st.integers(LONG_STRING_BYTES - 2, LONG_STRING_BYTES + 3)),
    st.text(max_size=5),
)
Values = st.recursive(
    Strings | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(Strings, inner, max_size=4),
    max_leaves=12,
)
Bodies = st.dictionaries(Strings, Values, max_size=5)


@given(Bodies, st.booleans(), st.sampled_from([None, 3]), st.binary(max_size=4))
def test_the_tree_is_what_a_parser_reads(tree: Any, ascii_only: bool, indent: int | None, before: bytes) -> None:
    text = json.dumps(tree, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return
    body = before + text + b"}]"
    skeleton = cut(body, len(before), len(before) + len(text))
    assert filled_in(skeleton.tree, body) == tree
    for string in long_strings(skeleton.tree):
        content = body[string.span.start : string.span.stop]
        assert len(content) > LONG_STRING_BYTES
        assert string.has_escapes == (b"\\" in content)
        assert string.text_byte_count == len(json.loads(b'"' + content + b'"').encode("utf-8", "surrogatepass"))


@given(Bodies)
def test_a_shared_map_gives_the_same_as_bytes(tree: Any) -> None:
    body = json.dumps(tree).encode()
    with mmap.mmap(-1, len(body) + 10) as shared:
        shared[5 : 5 + len(body)] = body
        skeleton = cut(shared, 5, 5 + len(body))
        assert filled_in(skeleton.tree, shared[:]) == tree


@given(st.text(alphabet='{}[]:,"\\truefalsn019.-eE \n', max_size=60))
@example('{"a":1}x')
@example('{"a":"' + "b" * 600)
@example('{"a":"' + "b" * 600 + '\\"}')
def test_exactly_what_a_strict_parser_takes_is_taken(text: str) -> None:
    body = text.encode()
    try:
        parsed = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    except ValueError:
        with pytest.raises((NotJson, TooComplex)):
            whole(body)
        return
    if not text.lstrip().startswith("{"):
        with pytest.raises(NotJson):
            whole(body)
        return
    if len(dict(parsed)) != len(parsed):
        with pytest.raises(InvalidRequest):
            whole(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  ",
        b"[]",
        b'"a"',
        b"1",
        b"null",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1} 2',
        b'{"a":1',
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\n"}',
        b'{"a":"\\x"}',
        b'{"a":' + b"9" * 5_000 + b"}",
        b'{"a":"' + b"x" * 600 + b'\xff"}',
        b'{"a":"' + b"x" * 600 + b'\n"}',
        b'{"a":"' + b"x" * 600 + b'\\q"}',
        b'{"a":' + b"x" * 600 + b"}",
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson) as caught:
        whole(body)
    assert caught.value.status == 400


def test_the_place_of_a_mistake_is_counted_in_the_body() -> None:
    body = b'{"a":"' + b"x" * 1_000 + b'","\xc3\xa9":oops}'
    with pytest.raises(NotJson, match=f"byte {body.index(b'oops')}"):
        whole(body)
    with pytest.raises(NotJson, match=f"UTF-8 at byte {body.index(0xC3)}"):
        whole(body.replace(b"\xc3\xa9", b"\xe9"))


@pytest.mark.parametrize("where", ['{"%s":1,"b":2,"%s":3}', '{"m":[{"%s":1,"%s":1}]}', '{"\\u0061":{"%s":0,"%s":0}}'])
def test_a_key_twice_is_refused_by_name(where: str) -> None:
    with pytest.raises(InvalidRequest, match="model") as caught:
        whole((where % ("model", "model")).encode())
    assert caught.value.part == "model"


def test_two_spellings_of_one_key_are_one_key() -> None:
    with pytest.raises(InvalidRequest):
        whole(b'{"model":"a","mod\\u0065l":"b"}')


def test_long_keys_are_keys() -> None:
    key = "k" * 5_000
    assert whole(json.dumps({key: "v" * 5_000, "a": 1}).encode()).tree.keys() == {key, "a"}
    with pytest.raises(InvalidRequest):
        whole(b'{"%s":1,"%s" :2}' % (key.encode(), key.encode()))


def test_a_text_that_looks_like_a_handle_stays_a_text() -> None:
    body = json.dumps({"a": "x" * 600, "b": "y"}).encode()
    handle = json.loads(whole(body).text)["a"]
    assert len(handle) == 33
    forged = json.dumps({"a": "x" * 600, "b": handle, "c": [handle]}).encode()
    tree = whole(forged).tree
    assert tree["b"] == handle
    assert tree["c"] == [handle]
    assert isinstance(tree["a"], LongString)


def test_half_a_surrogate_pair_survives() -> None:
    assert whole(b'{"a":"cut \\ud83d"}').tree["a"] == "cut \ud83d"


def test_depth_is_limited_at_the_documented_number() -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    assert whole(nested(MAX_DEPTH)).tree
    for depth in (MAX_DEPTH + 1, 20_000):
        with pytest.raises(TooComplex, match=str(MAX_DEPTH)):
            whole(nested(depth))


def test_brackets_in_texts_are_no_depth() -> None:
    tree = {"a": ["[" * 500, '"[{' * 2_000, "[[{{" * 1_000], "k[[[": "[" * 200}
    body = json.dumps(tree).encode()
    assert filled_in(whole(body).tree, body) == tree


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"' + b'\\"' * 3_000_000 + b'"}',
        b'{"a":[' + b'"a",' * 1_000_000 + b"1]}",
        b'{"a":[' + b'{"b":1},' * 200_000 + b"1]}",
        b'{"a":[' + b'["b",1],' * 20_000 + b"1]}",
        b'{"a":[' + (b'"' + b"x" * 600 + b'",') * 6_000 + b"1]}",
        b'{"a":' + b"[" * 2_000_000,
        b"{" + b",".join(b'"%d":1' % n for n in range(20_000)) + b"}",
        b'{"' + b"k" * 2_000_000 + b'":1}',
        b'{"a":' + b" " * 2_000_000 + b"1}",
    ],
)
def test_hostile_bodies_are_given_up(body: bytes) -> None:
    with pytest.raises(TooComplex) as caught:
        whole(body)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xd8\xff\xe0" + b'"[{' * 1_000_000,
        b"\x89PNG\r\n\x1a\n" + b"[" * 3_000,
        b"%PDF-1.7" + b" " * 2_000_000,
        b"\xef\xbb\xbf{" + b" " * 2_000_000 + b"}",
        b" \r\n\t" + b"[" * 3_000,
        b"[" * 3_000,
    ],
)
def test_what_does_not_begin_like_an_object_is_no_json_however_complex_it_looks(body: bytes) -> None:
    with pytest.raises(NotJson, match="begins with something else"):
        whole(body)
    with pytest.raises(NotJson, match="begins with something else"):
        cut(b"{" + body + b"{", 1, len(body) + 1)


def test_of_white_space_only_the_beginning_is_looked_at() -> None:
    for body in (b" " * 2_000_000, b" " * 100 + b"[" * 3_000):
        with pytest.raises(TooComplex):
            whole(body)


def test_wider_limits_read_what_the_loop_would_not() -> None:
    tree = {"a": ["b", 1] * 200_000, "m": {str(n): n for n in range(20_000)}, "long": 'say "x" ' * 300_000}
    body = json.dumps(tree).encode()
    with pytest.raises(TooComplex):
        whole(body)
    wide = Limits(parsed_bytes=64 << 20, steps=1_000_000, containers=1_000_000, members=1_000_000)
    assert filled_in(cut(body, 0, len(body), wide).tree, body) == tree


def test_a_thread_may_read_more_than_the_loop_and_not_anything() -> None:
    tree = {"a": [[n] for n in range(20_000)]}
    body = json.dumps(tree).encode()
    with pytest.raises(TooComplex):
        whole(body)
    assert cut(body, 0, len(body), OFF_LOOP).tree == tree
    body = json.dumps({"a": ["b"] * 1_200_000}).encode()
    with pytest.raises(TooComplex):
        cut(body, 0, len(body), OFF_LOOP)


def test_a_small_body_out_of_steps_is_parsed_as_it_is() -> None:
    tree = {"a": ["\n" * 40] * 6_000}
    body = json.dumps(tree).encode()
    skeleton = whole(body)
    assert skeleton.tree == tree
    assert skeleton.text == body


def test_data_urls_are_neither_checked_nor_counted() -> None:
    body = b'{"a":"data:image/png;base64,' + b"\xff" * 600 + b'"}'
    string = whole(body).tree["a"]
    assert isinstance(string, LongString)
    assert string.text_byte_count is None


@given(Bodies)
def test_offsets_of_the_skeleton_lead_back_to_the_body(tree: Any) -> None:
    body = b"###" + json.dumps(tree).encode()
    skeleton = cut(body, 3, len(body))
    inside = {offset for each in skeleton.cuts for offset in range(each.text.start, each.text.stop)}
    for offset in set(range(len(skeleton.text))) - inside:
        at = skeleton.absolute(offset)
        assert body[at : at + 1] == skeleton.text[offset : offset + 1]


@pytest.mark.parametrize("pairs", [0, 1, 31, 32, 33, 8_191, 8_192, 8_193, 16_416, 100_000])
@pytest.mark.parametrize("start", [b"", b"x", b"x" * 600])
def test_backslashes_before_the_end_are_told_in_pairs(pairs: int, start: bytes) -> None:
    content = start + b"\\\\" * pairs
    for escaped_quote in (b"", b'\\"' + b"y" * 700):
        body = b'{"a":"' + content + escaped_quote + b'","b":1}'
        tree = filled_in(whole(body).tree, body)
        assert tree == json.loads(body)


def test_a_string_of_nothing_but_backslashes_is_given_up_before_all_are_looked_at() -> None:
    body = b'{"a":"' + b"\\" * (4 << 20) + b'"}'
    with pytest.raises(TooComplex) as caught:
        whole(body)
    assert "backslashes" in str(caught.value.detail)
    assert cut(body, 0, len(body), replace(OFF_LOOP, parsed_bytes=8 << 20)).tree.keys() == {"a"}


def test_backslashes_count_towards_what_is_looked_at_in_the_whole_body() -> None:
    body = json.dumps({"a": ["\\" * 200_000] * 5}).encode()
    with pytest.raises(TooComplex):
        whole(body)
    assert filled_in(cut(body, 0, len(body), OFF_LOOP).tree, body) == json.loads(body)
