from __future__ import annotations

from typing import Any

import pytest

from gateway.simulator.prompt import ImageInput
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import SimulatorSettings
from gateway.simulator.vllm_request import check_cheap, check_text_length, sampling_of, turns_of

SETTINGS = SimulatorSettings(max_model_len=1_000, limit_images=2)


def _parts(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def _refused(body: dict[str, Any]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        turns_of(body, SETTINGS)
    return caught.value


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "U", "detail": "low"}},
        {"type": "input_image", "image_url": "U", "detail": "auto"},
        {"image_url": "U"},
        {"image_url": {"url": "U"}},
        {"type": "image_url", "image_url": "U", "uuid": "u"},
    ],
)
def test_every_spelling_of_a_picture_part_is_read(part: dict[str, Any]) -> None:
    (piece,) = turns_of(_parts(part), SETTINGS)[0].pieces
    assert isinstance(piece, ImageInput)
    assert (piece.pointer, piece.url) == ("messages.0.content.0", "U")


@pytest.mark.parametrize("image_url", [None, {"url": ""}, {"url": None}])
def test_a_part_with_an_id_alone_is_read(image_url: Any) -> None:
    (piece,) = turns_of(_parts({"type": "image_url", "image_url": image_url, "uuid": "u-1"}), SETTINGS)[0].pieces
    assert isinstance(piece, ImageInput)
    assert not piece.url
    assert piece.uuid == "u-1"


@pytest.mark.parametrize("uuid", [7, ["a"], ""])
def test_an_id_of_any_type_is_taken(uuid: Any) -> None:
    (piece,) = turns_of(_parts({"type": "image_url", "image_url": None, "uuid": uuid}), SETTINGS)[0].pieces
    assert isinstance(piece, ImageInput)
    assert isinstance(piece.uuid, str)


def test_text_parts_of_all_kinds_and_tool_calls_become_text() -> None:
    body: Any = {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]},
            {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "content": [{"type": "image_url", "image_url": {"url": "U"}}]},
        ]
    }
    turns = turns_of(body, SETTINGS)
    assert [turn.pieces for turn in turns[:2]] == [("S",), ("a", "b", "c")]
    assert turns[2].pieces == ('[{"name": "f", "arguments": "{}"}]',)
    assert isinstance(turns[3].pieces[0], ImageInput)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ({}, "Bad Request", "body.messages"),
        ({"messages": "x"}, "Bad Request", "list_type"),
        ({"messages": [{"content": "x"}]}, "Bad Request", "body.messages.0.role"),
        ({"messages": [{"role": "user", "content": 3}]}, "Bad Request", "body.messages.0.content"),
        (_parts({"type": "image_url", "image_url": "U"}), "Bad Request", "dict_type"),
        (_parts({"type": "image_url"}), "Bad Request", "body.messages.0.content.0.image_url"),
        (_parts({"type": "image_url", "image_url": {"url": 3}}), "Bad Request", "image_url.url"),
        (_parts({"type": "image_url", "image_url": {"url": "U", "detail": "max"}}), "Bad Request", "detail"),
        (_parts({"type": "hologram"}), "BadRequestError", "Unknown part type: hologram"),
        (_parts({"text": "x"}), "BadRequestError", "Missing 'type'"),
        (_parts({"type": "image_embeds", "image_embeds": "x"}), "BadRequestError", "--enable-mm-embeds"),
        (_parts({"type": "audio_url", "audio_url": {"url": "U"}}), "BadRequestError", "At most 0 audio"),
    ],
)
def test_a_bad_body_is_400_with_the_place(body: dict[str, Any], kind: str, text: str) -> None:
    refusal = _refused(body)
    assert (refusal.status, refusal.kind) == (400, kind)
    assert text in refusal.message


def test_too_many_pictures_are_refused_before_any_is_read() -> None:
    refusal = _refused(_parts(*[{"type": "image_url", "image_url": {"url": "U"}}] * 3))
    assert refusal.message == "At most 2 image(s) may be provided in one prompt. (parameter=image)"
    assert refusal.param == "image"


@pytest.mark.parametrize(
    ("body", "headers", "status", "param"),
    [
        ({"model": "nope"}, {}, 404, "model"),
        ({"mm_processor_kwargs": {"max_pixels": 1}}, {}, 400, "mm_processor_kwargs"),
        ({"media_io_kwargs": {}}, {}, 400, "media_io_kwargs"),
        ({"cache_salt": ""}, {}, 400, "cache_salt"),
        ({"cache_salt": 5}, {}, 400, "cache_salt"),
        ({"cache_salt": "s" * 1025}, {}, 400, "cache_salt"),
        ({"stream_options": {"include_usage": True}}, {}, 400, "body.stream_options"),
        ({"top_logprobs": 21}, {}, 400, "top_logprobs"),
        ({}, {"X-data-parallel-rank": "7"}, 400, None),
    ],
)
def test_cheap_checks(body: dict[str, Any], headers: dict[str, str], status: int, param: str | None) -> None:
    with pytest.raises(Refusal) as caught:
        check_cheap(body, SETTINGS, headers)
    assert (caught.value.status, caught.value.param) == (status, param)


def test_what_passes_the_cheap_checks() -> None:
    check_cheap({}, SETTINGS, {})
    check_cheap({"model": SETTINGS.served_model_name, "cache_salt": "s"}, SETTINGS, {"X-data-parallel-rank": "x"})


def test_text_above_the_context_is_refused() -> None:
    check_text_length(1_000, SETTINGS)
    with pytest.raises(Refusal, match=r"maximum context length is 1000 tokens\. However, your prompt") as caught:
        check_text_length(1_001, SETTINGS)
    assert caught.value.param == "input_tokens"


@pytest.mark.parametrize(
    ("body", "length", "text"),
    [
        ({}, 1_001, r"Input length \(1001\) exceeds model's maximum context length \(1000\)"),
        ({}, 1_000, "plus the number of requested output tokens"),
        ({"temperature": -1}, 10, "temperature must be non-negative, got -1"),
        ({"max_tokens": 1_001}, 10, "max_tokens=1001 cannot be greater than max_model_len=1000"),
        ({"n": 0}, 10, "n must be between 1 and 16384, got 0"),
        ({"n": 20_000}, 10, "n must be between"),
        ({"max_completion_tokens": 0}, 10, "max_tokens must be at least 1, got 0"),
    ],
)
def test_sampling_that_is_refused(body: dict[str, Any], length: int, text: str) -> None:
    with pytest.raises(Refusal, match=text) as caught:
        sampling_of(body, length, SETTINGS)
    assert caught.value.status == 400


def test_a_sum_above_the_context_is_clamped() -> None:
    assert sampling_of({"max_tokens": 900}, 600, SETTINGS).max_tokens == 400
    assert sampling_of({}, 600, SETTINGS).max_tokens == 400
    assert sampling_of({"max_tokens": 5, "max_completion_tokens": 7}, 600, SETTINGS).max_tokens == 7


@pytest.mark.parametrize(
    ("response_format", "schema"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}, {"type": "integer"}),
    ],
)
def test_which_json_is_asked_for(response_format: Any, schema: Any) -> None:
    assert sampling_of({"response_format": response_format}, 1, SETTINGS).schema == schema
