"""Embeddings and their like: what is read of a request, and where usage stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.dialects import dialect_of
from gateway.dialects.pooling import Pooling
from gateway.errors import InvalidRequest, TooManyImages, all_errors
from gateway.types import Answer, Call, RequestId, Usage

POOLING = Pooling()
URL = "https://example.com/a.png"


def read(**body: Any) -> Call:
    return POOLING.read({"model": "m", **body})


def test_every_path_is_known() -> None:
    for path in POOLING.paths:
        assert dialect_of(path) == POOLING


def test_texts_are_counted_and_nothing_is_generated() -> None:
    call = read(input=["ab", "cd"], user="u", metadata={"vlmgw_task": "ocr"})
    assert (call.model, call.text_bytes, call.output_limit_tokens, call.prompts) == ("m", 4, 0, None)
    assert (call.user, call.task, call.is_chat, call.stream) == ("u", "ocr", False, False)
    assert read(input=[[1, 2], [3]]).token_ids == 3


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}]},
            ["messages.0.content.0.image_url"],
        ),
        (
            {"input": [[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}]]},
            ["input.0.0.content.0.image_url"],
        ),
        ({"images": [URL, URL]}, ["images.0", "images.1"]),
        (
            {"inputs": [{"content": [{"type": "image_url", "image_url": {"url": URL}}]}]},
            ["inputs.0.content.0.image_url"],
        ),
        ({"input": [{"text": "a", "image": URL}]}, ["input.0.image"]),
        ({"text": "a", "image_data": [URL]}, ["image_data.0"]),
    ],
)
def test_images_wherever_an_engine_takes_them(body: dict[str, Any], names: list[str]) -> None:
    assert [image.name for image in read(**body).images] == names


def test_fields_of_an_engines_inside_are_found_but_ids_are_a_prompt() -> None:
    call = read(text="a", input_ids=[1], cache_salt="s", mm_processor_kwargs={}, image_data={"url": URL, "uuid": "u"})
    assert call.foreign_fields == (("cache_salt",), ("mm_processor_kwargs",), ("image_data", "uuid"))
    assert call.token_ids == 1


@pytest.mark.parametrize(("body", "part"), [({"data": {"url": URL}}, "data"), ({"images": URL}, "images")])
def test_what_is_refused(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert caught.value.part == part


def test_usage_in_both_forms() -> None:
    openai = b'{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}}'
    assert POOLING.usage(openai, streamed=False) == Usage(7, 0)
    cohere = b'{"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":9,"image_tokens":4}}}'
    assert POOLING.usage(cohere, streamed=False) == Usage(9, 0, image_tokens=4)
    assert POOLING.usage(b"\x00\x01", streamed=False) is None


def test_errors_have_openais_envelope() -> None:
    for error in all_errors():
        told = json.loads(POOLING.error_body(error(part="input"), RequestId("r")))
        assert told["error"]["code"] == error.code
    assert b'"error"' in POOLING.stream_error(TooManyImages(), RequestId("r"))
    assert POOLING.answer({"data": []}) == Answer()
