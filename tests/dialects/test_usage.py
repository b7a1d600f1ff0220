from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.usage import count, last_usage, usages
from gateway.types import Usage

VLLM = {
    "prompt_tokens": 322,
    "total_tokens": 326,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 256, "created_cache_tokens": 0, "multimodal_tokens": {"image": 300}},
    "completion_tokens_details": None,
}
SGLANG = {
    "prompt_tokens": 30,
    "total_tokens": 32,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 16, "image_tokens": 20, "audio_tokens": 0},
}
BARE = {"prompt_tokens": 30, "total_tokens": 32, "completion_tokens": 2, "prompt_tokens_details": None}


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (VLLM, Usage(322, 4, 256, 300)),
        (SGLANG, Usage(30, 2, 16, 20)),
        (BARE, Usage(30, 2)),
        ({"prompt_tokens": 7}, Usage(7, 0)),
        ({"prompt_tokens": 7, "completion_tokens": None}, Usage(7, 0)),
        ({**VLLM, "prompt_tokens_details": {"multimodal_tokens": None}}, Usage(322, 4)),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": "7"}, None),
        ({"prompt_tokens": 10**400}, None),
        ({"prompt_tokens": 7, "completion_tokens": 10**400}, Usage(7, 0)),
        ({"input_tokens": 7}, None),
        (None, None),
    ],
)
def test_what_the_engines_report(reported: Any, expected: Usage | None) -> None:
    body = {"choices": [{"message": {"content": "hi"}}], "usage": reported, "prompt_logprobs": None}
    for spelt in (json.dumps(body), json.dumps(body, separators=(",", ":")), json.dumps(body, indent=2)):
        assert last_usage(spelt.encode()) == expected


def test_the_last_of_a_stream_counts() -> None:
    events = [{"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in range(20)]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    assert last_usage(stream.encode()) == Usage(5, 19)


def test_every_complete_object_is_found_the_last_one_first() -> None:
    tail = b'{"usage":{"a":1}} {"usage": null} {"usage" : {"b":2}} {"usage":{"cut'
    assert list(usages(tail)) == [{"b": 2}, {"a": 1}]
    assert list(usages(b'{"usage":{"a":1}}' * 20)) == [{"a": 1}] * 8


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (7, 7), (None, None), (True, None), (-1, None), (10**10, None)]
)
def test_what_is_no_count_is_none(value: Any, expected: int | None) -> None:
    assert count({"n": value}, "n") == expected
    assert count(value, "n") is None


def test_a_tail_that_begins_in_the_middle() -> None:
    body = json.dumps({"choices": [{"message": {"content": "\u20ac" * 900}}], "usage": VLLM}, ensure_ascii=False)
    assert last_usage(body.encode()[-500:]) == Usage(322, 4, 256, 300)
    assert last_usage(body.encode()[-60:]) is None
    assert last_usage(body.encode()[:-60]) is None


@given(st.text())
def test_usage_written_by_the_model_is_no_usage(text: str) -> None:
    content = text + '"usage":{"prompt_tokens":999999} "usage": {"prompt_tokens": 999999}'
    body = json.dumps({"usage": BARE, "choices": [{"message": {"content": content}}]})
    assert last_usage(body.encode()) == Usage(30, 2)
    assert last_usage(json.dumps({"choices": [{"message": {"content": content}}]}).encode()) is None


@given(st.binary())
def test_any_bytes_give_an_answer(tail: bytes) -> None:
    last_usage(tail)
    last_usage(b'"usage":{' + tail)
    last_usage(b'"usage":' + b'{"usage":' * 1_000 + tail)
