from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.text import json_bytes, text_bytes
from gateway.types import Json, LongString, Span


@given(st.text())
def test_a_string_counts_its_utf8(text: str) -> None:
    assert text_bytes(text) == len(text.encode())


def test_half_a_surrogate_pair_counts_three() -> None:
    assert text_bytes("\ud83d") == 3


def test_what_is_no_text_counts_nothing() -> None:
    others: list[Json] = [None, True, 7, 1.5, ["a"], {"a": "b"}]
    assert [text_bytes(value) for value in others] == [0] * 6


def test_a_long_string_counts_what_was_counted_else_its_span() -> None:
    assert text_bytes(LongString(Span(10, 1_010), has_escapes=True, text_byte_count=700)) == 700
    assert text_bytes(LongString(Span(10, 1_010), has_escapes=False)) == 1_000


def test_json_counts_its_spelling() -> None:
    tools: list[Json] = [{"type": "function", "function": {"name": "caf\u00e9", "parameters": {"a": [1, None]}}}]
    assert json_bytes(tools) == len(json.dumps(tools, ensure_ascii=False).encode())
    assert json_bytes({"a": LongString(Span(0, 600), has_escapes=False)}) == len('{"a": ""}') + 600
