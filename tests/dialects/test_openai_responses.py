from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseErrorEvent

from gateway.dialects import DIALECTS, dialect_of
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.errors import BackendLost, InvalidRequest
from gateway.types import Call, LongString, OtherMedium, RequestId, Span, Usage
from tests.events import events_of

RESPONSES = OpenAIResponses()
ID = RequestId("r-1")
URL = "https://example.com/a.png"


def read(given: Any = "hi", **body: Any) -> Call:
    return RESPONSES.read({"model": "m", "input": given, **body})


def picture(url: Any = URL, **more: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, **more}


def result(*parts: Any, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": "c", "output": list(parts)}


def test_the_registry_knows_the_path() -> None:
    assert dialect_of("/v1/responses") in DIALECTS


def test_a_plain_request() -> None:
    assert read() == Call(
        model="m",
        stream=False,
        wants_usage=True,
        output_limit_tokens=None,
        images=(),
        text_bytes=2,
        message_count=1,
        output_limit_field="max_output_tokens",
        prompt_field="input",
    )
    assert read(LongString(Span(0, 700), has_escapes=False, text_byte_count=699)).text_bytes == 699


def test_everything_that_is_read_of_the_rest() -> None:
    call = read(
        stream=True,
        max_output_tokens=9,
        instructions="Be brief",
        tools=[{"a": 1}],
        user="u",
        metadata={"vlmgw_task": "ocr"},
        priority=3,
        cache_salt="s",
        unknown=1,
    )
    assert (call.stream, call.wants_usage, call.output_limit_tokens) == (True, True, 9)
    assert (call.text_bytes, call.message_count) == (2 + 8 + len('[{"a": 1}]'), 2)
    assert (call.user, call.task) == ("u", "ocr")
    assert call.foreign_fields == (("priority",), ("cache_salt",))
    assert not call.is_continued


@given(st.lists(st.sampled_from(["text", "message", "typed", "call", "result", "screen", "reasoning"]), max_size=8))
def test_images_planted_are_images_found_in_order(plan: list[str]) -> None:
    planted: list[tuple[str, int, str]] = []
    items: list[Any] = []
    for index, kind in enumerate(plan):
        url = f"https://example.com/{index}.png"
        shapes: dict[str, tuple[dict[str, Any], str | None]] = {
            "text": ({"role": "user", "content": url}, None),
            "message": ({"role": "user", "content": [{"type": "input_text", "text": "a"}, picture(url)]}, "content.1"),
            "typed": ({"type": "message", "role": "user", "content": [picture(url)]}, "content.0"),
            "call": ({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}, None),
            "result": (result({"type": "input_text", "text": "a"}, picture(url)), "output.1"),
            "screen": (
                {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": url}},
                "output",
            ),
            "reasoning": ({"type": "reasoning", "summary": [{"type": "summary_text", "text": url}]}, None),
        }
        item, place = shapes[kind]
        items.append(item)
        if place is not None:
            planted.append((url, index, f"input.{index}.{place}.image_url"))
    call = read(items)
    assert [(each.source, each.pointer[1], each.name) for each in call.images] == planted
    assert all(not each.wrap and not each.retype for each in call.images)
    assert call.message_count == len(items)


def test_text_counts_wherever_a_template_prints_it() -> None:
    items = [
        {"role": "user", "content": "four"},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "name": "g", "input": "abc"},
        {"type": "function_call_output", "output": "result"},
        {"type": "reasoning", "summary": [{"text": "s"}], "content": [{"type": "reasoning_text", "text": "tt"}]},
    ]
    assert read(items).text_bytes == 4 + 3 + 4 + 6 + 3


def test_an_engines_fields_inside_a_part_are_noted() -> None:
    call = read([{"role": "user", "content": [picture(uuid="u")]}])
    assert call.foreign_fields == (("input", 0, "content", 0, "uuid"),)


def test_files_are_noted_by_how_they_come() -> None:
    content = [
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
    ]
    assert read([{"role": "user", "content": content}]).other_media == (
        OtherMedium("input.0.content.0", is_inline=True),
        OtherMedium("input.0.content.1", is_inline=False),
        OtherMedium("input.0.content.2", is_inline=True),
    )


@pytest.mark.parametrize(
    "body",
    [{"previous_response_id": "resp_1"}, {"conversation": "c"}, {"input": [{"type": "item_reference", "id": "m"}]}],
)
def test_what_the_engine_has_kept_is_noted(body: dict[str, Any]) -> None:
    assert RESPONSES.read({"input": "hi", **body}).is_continued


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"input": None}, "input"),
        ({"input": {}}, "input"),
        ({"input": ["hi"]}, "input.0"),
        ({"input": [{"role": "user", "content": 7}]}, "input.0.content"),
        ({"input": [{"type": [], "content": [7]}]}, "input.0.content.0"),
        ({"input": [{"role": "user", "content": [{"type": []}]}]}, "input.0.content.0.type"),
        ({"input": [{"role": "user", "content": [picture(None)]}]}, "input.0.content.0.image_url"),
        ({"input": [result(picture(""))]}, "input.0.output.0.image_url"),
        ({"input": [result({"type": "input_image", "file_id": "f"})]}, "input.0.output.0.file_id"),
        ({"input": [{"role": "user", "content": [picture(file_id="f")]}]}, "input.0.content.0.file_id"),
        ({"input": [{"type": "image_embeds", "image_embeds": "AA=="}]}, "input.0"),
        ({"input": [picture(None)]}, "input.0.image_url"),
        ({"background": True}, "background"),
        ({"previous_input_messages": [{"role": "user"}]}, "previous_input_messages"),
        ({"stream": "yes"}, "stream"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
    ],
)
def test_what_cannot_be_answered_for_is_named(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        RESPONSES.read({"model": "m", "input": "hi", **body})
    assert raised.value.part == part


def test_errors_have_the_envelope_of_chat() -> None:
    error = InvalidRequest("It is wrong.", part="input.0")
    assert RESPONSES.error_body(error, ID) == OpenAIChat().error_body(error, ID)


def test_a_stream_ends_with_the_event_that_the_reference_names() -> None:
    (event,) = events_of(RESPONSES.stream_error(BackendLost(), ID))
    fields = json.loads(event.data)
    assert event.name == fields["type"] == "error"
    parsed = ResponseErrorEvent.model_validate(fields)
    assert (parsed.code, parsed.message, parsed.param) == ("backend_lost", BackendLost.summary, None)
    assert fields["error"]["code"] == "backend_lost"


def test_usage_of_an_answer_and_of_a_stream() -> None:
    usage = {
        "input_tokens": 322,
        "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 0},
        "output_tokens": 4,
        "total_tokens": 326,
    }
    whole = {"object": "response", "output": [], "usage": usage}
    assert RESPONSES.usage(json.dumps(whole).encode(), streamed=False) == Usage(322, 4, 256)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "usage": None}},
        {"type": "response.output_text.delta", "delta": '"usage":{"input_tokens":1}'},
        {"type": "response.completed", "response": whole},
    ]
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    assert RESPONSES.usage(stream.encode(), streamed=True) == Usage(322, 4, 256)
    assert RESPONSES.usage(stream.encode()[:-400], streamed=True) is None
    assert RESPONSES.usage(b'{"usage": {"input_tokens": 3, "output_tokens": null}}', streamed=False) == Usage(3, 0)


def test_what_policies_ask_of_a_request_besides_its_images() -> None:
    found = read([{"role": "user", "content": [{"type": "input_image", "image_url": "https://a.example/x"}]}])
    assert (found.images[0].text_type, found.output_limit_field, found.has_tools) == (
        "input_text",
        "max_output_tokens",
        False,
    )
    assert read(tools=[{"type": "function"}]).has_tools
