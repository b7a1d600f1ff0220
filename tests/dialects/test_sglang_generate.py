"""SGLang's /generate: prompts one and many, limits, usage, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.dialects import dialect_of, engines_of
from gateway.dialects.sglang_generate import DEFAULT_NEW_TOKENS, SglangGenerate
from gateway.errors import BackendLost, InvalidRequest, TooManyImages
from gateway.types import AnswerText, Call, EngineKind, RequestId, Usage

GENERATE = SglangGenerate()
URL = "https://example.com/a.png"


def read(**body: Any) -> Call:
    return GENERATE.read(body)


def test_only_an_engine_that_has_the_path_is_asked() -> None:
    assert dialect_of("/generate") == GENERATE
    assert engines_of("/generate") == {EngineKind.SGLANG, EngineKind.GENERIC}
    assert EngineKind.VLLM in engines_of("/v1/chat/completions")


def test_one_prompt_with_images() -> None:
    call = read(text="abc", image_data=[URL, {"url": URL}], sampling_params={"max_new_tokens": 7, "n": 2}, stream=True)
    assert (call.text_bytes, call.prompts, call.choices, call.output_limit_tokens) == (3, 1, 2, 7)
    assert [image.name for image in call.images] == ["image_data.0", "image_data.1"]
    assert (call.stream, call.model, call.is_chat, call.message_count) == (True, None, False, 0)


def test_many_prompts() -> None:
    call = read(text=["a", "b"], image_data=[[URL], None], sampling_params=[{"max_new_tokens": 3}, {"n": 2}])
    assert (call.prompts, call.choices, call.output_limit_tokens) == (2, 4, DEFAULT_NEW_TOKENS)
    assert read(input_ids=[[1, 2], [3]], sampling_params=[]).token_ids == 3
    assert read(input_ids=[1]).prompt_field == "input_ids"


def test_what_belongs_to_the_engines_inside_is_found_but_ids_are_a_prompt() -> None:
    call = read(input_ids=[1], rid="r", mm_hashes=["0"], input_embeds=[[0.5]], image_data={"url": URL, "uuid": "u"})
    assert set(call.foreign_fields) == {("rid",), ("mm_hashes",), ("input_embeds",), ("image_data", "uuid")}


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"text": 3}, "text"),
        ({"sampling_params": "x"}, "sampling_params"),
        ({"sampling_params": [{}, 3]}, "sampling_params.1"),
        ({"sampling_params": {"max_new_tokens": -1}}, "max_new_tokens"),
        ({"text": "a", "image_data": [{"format": "processor_output"}]}, "image_data.0"),
    ],
)
def test_what_cannot_be_read_is_named(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert caught.value.part == part


def meta(identity: str, prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    told = {"id": identity, "prompt_tokens": prompt, "completion_tokens": completion, **more}
    return {"text": "x", "meta_info": told}


def test_usage_of_one_answer_of_many_and_of_streams() -> None:
    one = json.dumps(meta("a", 5, 2, cached_tokens=1)).encode()
    assert GENERATE.usage(one, streamed=False) == Usage(5, 2, 1)
    many = json.dumps([meta("a", 5, 2), meta("b", 7, 3, cached_tokens=4)]).encode()
    assert GENERATE.usage(many, streamed=False) == Usage(12, 5, None)
    events = [meta("a", 5, 1), meta("b", 7, 1), meta("a", 5, 2), meta("b", 7, 4)]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    assert GENERATE.usage(stream, streamed=True) == Usage(12, 6)
    assert GENERATE.usage(b'{"error":{"message":"no"}}', streamed=False) is None


def test_answers_and_errors() -> None:
    assert GENERATE.answer({"text": "a"}).texts == (AnswerText(("text",), "", whole=True),)
    assert GENERATE.answer({"error": {}}).texts == ()
    told = json.loads(GENERATE.error_body(TooManyImages(part="image_data"), RequestId("r")))
    assert told["error"]["message"].startswith("image_data: ")
    assert GENERATE.stream_error(BackendLost(), RequestId("r")).startswith(b'data: {"error"')
