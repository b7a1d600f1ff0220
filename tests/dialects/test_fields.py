from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.dialects import fields
from gateway.errors import InvalidRequest
from gateway.types import JsonObject, LongString, Span

LONG = LongString(Span(0, 600), has_escapes=False)


def test_null_is_absence() -> None:
    trees: tuple[JsonObject, ...] = ({}, {"model": None, "stream": None, "n": None})
    for tree in trees:
        assert fields.model(tree) is None
        assert fields.flag(tree, "stream") is False
        assert fields.count(tree, "n", at_least=1) is None


def test_what_is_there_is_read() -> None:
    assert fields.model({"model": "m"}) == "m"
    assert fields.flag({"stream": True}, "stream") is True
    assert fields.count({"n": 10**30}, "n", at_least=1) == 10**9
    assert fields.task({"vlmgw_task": "ocr", "task": "theirs"}) == "ocr"
    assert fields.engine_fields({"uuid": "u", "a": 1, "cache_salt": None}, frozenset({"uuid", "cache_salt"})) == [
        "uuid"
    ]


@pytest.mark.parametrize("value", [None, 1, [], {}, {"vlmgw_task": 7}, {"vlmgw_task": LONG}, "vlmgw_task"])
def test_no_task_is_no_error(value: Any) -> None:
    assert fields.task(value) is None


@pytest.mark.parametrize(
    ("read", "part"),
    [
        (lambda: fields.model({"model": LONG}), "model"),
        (lambda: fields.model({"model": ["m"]}), "model"),
        (lambda: fields.flag({"stream": 1}, "stream"), "stream"),
        (lambda: fields.count({"n": True}, "n", at_least=0), "n"),
        (lambda: fields.count({"n": 0}, "n", at_least=1), "n"),
        (lambda: fields.count({"n": 1.0}, "n", at_least=1), "n"),
    ],
)
def test_a_misshapen_member_is_named(read: Callable[[], object], part: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read()
    assert raised.value.part == part
