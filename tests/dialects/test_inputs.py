"""Inputs in every shape that an engine takes: what is counted, and what is refused by its name."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.inputs import InputReader
from gateway.errors import InvalidRequest
from gateway.types import ImageForm, LongString, MediumKind, Span

URL = "https://example.com/a.png"
DATA = "data:image/png;base64,iVBORw0KGgo="


def read(value: Any) -> InputReader:
    reader = InputReader()
    reader.read(("input",), value)
    return reader


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def image(url: str = URL) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.parametrize(
    ("value", "prompts", "text_bytes", "token_ids"),
    [
        ("héllo", 1, 6, 0),
        (["a", "bc"], 2, 3, 0),
        ([1, 2, 3], 1, 0, 3),
        ([[1, 2], [3]], 2, 0, 3),
        (None, 0, 0, 0),
        ([], 0, 0, 0),
        ({"text": "abc"}, 1, 3, 0),
        ([{"text": "abc"}, "d"], 2, 4, 0),
        ({"content": [{"type": "text", "text": "ab"}]}, 1, 2, 0),
        ([{"type": "text", "text": "ab"}], 1, 2, 0),
    ],
)
def test_what_is_counted(value: Any, prompts: int, text_bytes: int, token_ids: int) -> None:
    reader = read(value)
    assert (reader.prompts, reader.parts.text_bytes, reader.token_ids) == (prompts, text_bytes, token_ids)


def test_a_conversation_and_a_list_of_conversations_are_read_alike() -> None:
    one = read([user({"type": "text", "text": "hi"}, image())])
    assert [part.pointer for part in one.parts.images] == [("input", 0, "content", 1, "image_url", "url")]
    two = read([[user(image())], [user("x"), user(image(DATA))]])
    assert [part.name for part in two.parts.images] == [
        "input.0.0.content.0.image_url",
        "input.1.1.content.0.image_url",
    ]
    assert two.messages == 3


def test_a_lone_image_is_fixed_and_may_be_either_spelling() -> None:
    (part,) = read([{"text": "a", "image": DATA}]).parts.images
    assert (part.pointer, part.form, part.is_fixed) == (("input", 0, "image"), ImageForm.EITHER, True)


@pytest.mark.parametrize(
    ("source", "is_inline", "is_bare"),
    [
        (DATA, True, False),
        ("AAAA", True, True),
        ("https://example.com/a.mp4", False, False),
        ("file:///etc/passwd", False, False),
        (LongString(Span(1, 9), False, None, is_data_url=True), True, False),
        (LongString(Span(1, 9), False, 8), True, True),
    ],
)
def test_a_lone_clip_brings_its_bytes_unless_it_is_an_address(source: Any, is_inline: bool, is_bare: bool) -> None:
    (medium,) = read({"video": source}).parts.other_media
    assert (medium.kind, medium.is_inline, medium.is_bare) == (MediumKind.VIDEO, is_inline, is_bare)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (3, "input"),
        ([True], "input.0"),
        ([1, "a", 2.5], "input.0"),
        ([[[[["deep"]]]]], "input.0.0.0.0"),
        ({"image": ""}, "input.image"),
        ({"audio": 7}, "input.audio"),
        ([user({"type": "image_url"})], "input.0.content.0.image_url"),
        ([user({"type": "image_embeds", "image_embeds": "x"})], "input.0.content.0"),
    ],
)
def test_what_cannot_be_read_is_named(value: Any, part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(value)
    assert caught.value.part == part


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
            ["role", "content", "type", "text", "image", "image_url", "video", "url"]), inner, max_size=3),
        max_leaves=12,
    )
)  # fmt: skip
def test_no_shape_makes_it_fail_in_another_way(value: Any) -> None:
    with contextlib.suppress(InvalidRequest):
        read(value)
