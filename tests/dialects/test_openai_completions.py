"""Legacy completions: prompts, streams, usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.dialects import dialect_of
from gateway.dialects.openai_completions import OpenAICompletions
from gateway.errors import BackendLost, InvalidRequest
from gateway.types import AnswerText, Call, RequestId, Usage

COMPLETIONS = OpenAICompletions()


def read(**body: Any) -> Call:
    return COMPLETIONS.read({"model": "m", **body})


def test_its_path_is_known() -> None:
    assert dialect_of("/v1/completions") == COMPLETIONS


@pytest.mark.parametrize(
    ("prompt", "prompts", "text_bytes", "ids"),
    [("abc", 1, 3, 0), (["a", "b"], 2, 2, 0), ([1, 2], 1, 0, 2), ([[1], [2, 3]], 2, 0, 3), (None, 1, 0, 0)],
)
def test_every_shape_of_a_prompt(prompt: Any, prompts: int, text_bytes: int, ids: int) -> None:
    call = read(prompt=prompt, n=3, max_tokens=9, suffix="")
    assert (call.prompts, call.text_bytes, call.token_ids) == (prompts, text_bytes, ids)
    assert (call.choices, call.output_limit_tokens, call.message_count) == (3 * prompts, 9, 0)
    assert (call.is_chat, call.prompt_field) == (False, "prompt")


def test_streams_want_usage_only_where_they_say_so() -> None:
    assert read(prompt="a").wants_usage
    assert not read(prompt="a", stream=True).wants_usage
    assert read(prompt="a", stream=True, stream_options={"include_usage": True}).wants_usage


def test_an_engine_that_cuts_prompts_is_asked_how_long_they_may_be() -> None:
    assert read(prompt="a", truncate_prompt_tokens=5).prompts is None


def test_tensors_are_taken_out_and_nonsense_is_refused() -> None:
    assert read(prompt_embeds="x").foreign_fields == (("prompt_embeds",),)
    with pytest.raises(InvalidRequest) as caught:
        read(prompt=[["a", 1]])
    assert caught.value.part == "prompt.0.1"


def test_answers_and_usage() -> None:
    chunk = {"choices": [{"index": 1, "text": "ab", "finish_reason": None}]}
    assert COMPLETIONS.answer(chunk).texts == (AnswerText(("choices", 0, "text"), "1", whole=False),)  # type: ignore[arg-type]
    last = COMPLETIONS.answer({"choices": [{"index": 1, "text": "", "finish_reason": "stop"}]})
    assert last.ended == ("1",)
    tail = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\ndata: [DONE]\n\n'
    assert COMPLETIONS.usage(tail, streamed=True) == Usage(4, 2)


def test_errors_are_those_of_chat() -> None:
    event = COMPLETIONS.stream_error(BackendLost(), RequestId("r"))
    assert json.loads(event.removeprefix(b"data: "))["error"]["code"] == "backend_lost"
    assert json.loads(COMPLETIONS.error_body(BackendLost(), RequestId("r")))["error"]["param"] is None
