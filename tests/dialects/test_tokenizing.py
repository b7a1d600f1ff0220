"""Tokenize and detokenize: conversations with images go the way of all images."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.dialects import dialect_of
from gateway.dialects.tokenizing import Tokenizing
from gateway.errors import InvalidRequest, TooManyImages
from gateway.types import Answer, Call, RequestId

TOKENIZING = Tokenizing()
URL = "https://example.com/a.png"


def read(**body: Any) -> Call:
    return TOKENIZING.read(body)


def test_every_path_is_known() -> None:
    for path in TOKENIZING.paths:
        assert dialect_of(path) == TOKENIZING


def test_what_is_read() -> None:
    assert (read(prompt="abc").text_bytes, read(prompt=["a", "b"]).text_bytes) == (3, 2)
    call = read(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}])
    assert [image.name for image in call.images] == ["messages.0.content.0.image_url"]
    assert (call.message_count, call.output_limit_tokens, call.prompts, call.prompt_field) == (1, 0, None, "messages")
    assert read(messages=[], tools=[{"type": "function"}]).text_bytes > 10
    assert read(tokens=[1, 2, 3], model="m") == read(model="m")


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(messages="hi")
    assert caught.value.part == "messages"


def test_nothing_is_used_up_and_errors_are_those_of_chat() -> None:
    assert TOKENIZING.usage(b'{"count":3}', streamed=False) is None
    assert TOKENIZING.answer({"prompt": "a"}) == Answer()
    assert json.loads(TOKENIZING.error_body(TooManyImages(), RequestId("r")))["error"]["code"] == "too_many_images"
    assert TOKENIZING.stream_error(TooManyImages(), RequestId("r")).endswith(b"\n\n")
