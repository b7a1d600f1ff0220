"""What an alias gives a request, and that the request's own word counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects import dialect_of
from gateway.policy.effective import Mode
from gateway.stages.defaulting import with_parameters
from gateway.types import Call
from tests.policy.examples import BUILTIN

PARAMETERS = (
    (("max_tokens",), "64"),
    (("temperature",), "0.5"),
    (("chat_template_kwargs", "enable_thinking"), "false"),
    (("chat_template_kwargs", "style"), '"plain"'),
)
ALIAS = replace(BUILTIN, parameters=PARAMETERS)
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def added(path: str = "/v1/chat/completions", **body: Any) -> tuple[dict[str, Any], Call]:
    dialect = dialect_of(path)
    assert dialect is not None
    call = with_parameters(ALIAS, dialect.read(body), body)
    return {".".join((*map(str, at), key)): json.loads(value) for at, key, value in call.additions}, call


def test_what_is_absent_is_added_and_counted() -> None:
    given, call = added(**CHAT)
    assert given == {
        "max_tokens": 64,
        "temperature": 0.5,
        "chat_template_kwargs": {"enable_thinking": False, "style": "plain"},
    }
    assert call.output_limit_tokens == 64


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_a_limit_by_any_name_is_a_limit(limit: str) -> None:
    body: dict[str, Any] = {**CHAT, limit: 7, "temperature": 1}
    given, call = added(**body)
    assert (set(given), call.output_limit_tokens) == ({"chat_template_kwargs"}, 7)


def test_a_limit_has_the_name_of_its_api() -> None:
    assert added("/v1/responses", input="hi")[0]["max_output_tokens"] == 64
    assert added("/v1/messages", **CHAT)[0]["max_tokens"] == 64


def test_objects_are_joined() -> None:
    given, _ = added(**CHAT, chat_template_kwargs={"style": "rich"})
    assert given == {"max_tokens": 64, "temperature": 0.5, "chat_template_kwargs.enable_thinking": False}
    assert "chat_template_kwargs" not in added(**CHAT, chat_template_kwargs="odd")[0]


def test_what_generates_nothing_and_what_is_only_watched_gets_nothing() -> None:
    assert added("/v1/embeddings", input="hi")[0] == {}
    assert added("/v1/messages/count_tokens", **CHAT)[0] == {}
    shadow = replace(ALIAS, mode=Mode.SHADOW)
    dialect = dialect_of("/v1/chat/completions")
    assert dialect is not None
    assert with_parameters(shadow, dialect.read(CHAT), CHAT).additions == ()
