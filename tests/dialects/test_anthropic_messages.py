from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects import DIALECTS, dialect_of
from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.errors import (
    BackendLost,
    InvalidRequest,
    PoolSaturated,
    RouteNotFound,
    Spelling,
    TooManyImages,
    all_errors,
)
from gateway.types import Call, ImageForm, ImagePart, LongString, OtherMedium, RequestId, Span, Usage
from tests.events import events_of

MESSAGES = AnthropicMessages()
COUNT = dialect_of("/v1/messages/count_tokens")
ID = RequestId("r-1")
URL = "https://example.com/a.png"


def read(*content: Any, **body: Any) -> Call:
    messages: list[Any] = [{"role": "user", "content": list(content) or "hi"}]
    return MESSAGES.read({"model": "m", "max_tokens": 9, "messages": messages, **body})


def inline(data: Any = "iVBORw0KGgo=", media_type: Any = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def remote(url: Any = URL) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "url", "url": url}}


def result(*blocks: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": list(blocks)}


def test_the_registry_knows_both_paths() -> None:
    assert dialect_of("/v1/messages") == MESSAGES
    assert COUNT in DIALECTS
    assert dialect_of("/v1/messages/batches") is None


def test_a_plain_request() -> None:
    assert read() == Call(
        model="m",
        stream=False,
        wants_usage=True,
        output_limit_tokens=9,
        images=(),
        text_bytes=2,
        message_count=1,
    )


def test_everything_that_is_read_of_the_rest() -> None:
    call = read(
        stream=True,
        system=[{"type": "text", "text": "Be brief", "cache_control": {"type": "ephemeral"}}],
        tools=[{"a": 1}],
        metadata={"user_id": "u", "vlmgw_task": "ocr"},
        cache_salt="s",
        unknown=1,
    )
    assert (call.stream, call.wants_usage, call.message_count) == (True, True, 2)
    assert call.text_bytes == 2 + 8 + len('[{"a": 1}]')
    assert (call.user, call.task) == ("u", "ocr")
    assert call.foreign_fields == (("cache_salt",),)
    assert read(system="Be brief").text_bytes == 10


def test_a_count_makes_no_output_and_no_stream() -> None:
    assert COUNT is not None
    call = COUNT.read({"messages": [{"role": "user", "content": [inline()]}], "max_tokens": 99, "stream": True})
    assert (call.output_limit_tokens, call.stream, len(call.images)) == (0, False, 1)


def test_both_sources_say_how_they_are_to_be_delivered() -> None:
    first, second = read(inline(media_type="image/jpg"), remote()).images
    assert first == ImagePart(
        pointer=("messages", 0, "content", 0, "source", "data"),
        part=("messages", 0, "content", 0),
        source="iVBORw0KGgo=",
        form=ImageForm.BASE64,
        media_type="image/jpg",
    )
    assert (second.pointer[-2:], second.form, second.media_type) == (("source", "url"), ImageForm.BASE64_SOURCE, None)
    assert [each.name for each in (first, second)] == [
        "messages.0.content.0.source.data",
        "messages.0.content.1.source",
    ]


@given(st.lists(st.lists(st.sampled_from(["text", "inline", "remote", "result", "document"]), max_size=4), max_size=4))
def test_images_planted_are_images_found_in_order(plan: list[list[str]]) -> None:
    planted: list[tuple[str, int]] = []
    messages = []
    for index, kinds in enumerate(plan):
        content: list[Any] = []
        for kind in kinds:
            name = f"https://example.com/{len(planted)}.png"
            shapes: dict[str, Any] = {
                "text": {"type": "text", "text": name},
                "inline": inline(name),
                "remote": remote(name),
                "result": result({"type": "text", "text": "ok"}, remote(name)),
                "document": {"type": "document", "source": {"type": "content", "content": [inline(name)]}},
            }
            content.append(shapes[kind])
            if kind != "text":
                planted.append((name, index))
        messages.append({"role": "user", "content": content})
    call = read(messages=messages)
    assert [(each.source, each.pointer[1]) for each in call.images] == planted


def test_text_counts_wherever_a_template_prints_it() -> None:
    long = LongString(Span(0, 700), has_escapes=False, text_byte_count=699)
    blocks = [
        {"type": "text", "text": long},
        {"type": "thinking", "thinking": "hm", "signature": "not text"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "t", "content": "four"},
        result({"type": "text", "text": "abc"}),
        {"type": "document", "title": "T", "source": {"type": "text", "data": "page"}},
        {"type": "web_search_tool_result", "content": {"type": "error"}},
        "é",
    ]
    assert read(*blocks).text_bytes == 699 + 2 + 1 + 8 + 4 + 3 + 1 + 4 + len('{"type": "error"}') + 2


def test_documents_are_noted_by_how_they_come() -> None:
    sources = [{"type": "base64", "data": "AA=="}, {"type": "url", "url": URL}, {"type": "file", "file_id": "f"}]
    call = read(*({"type": "document", "source": source} for source in sources))
    assert call.other_media == tuple(
        OtherMedium(f"messages.0.content.{index}.source", is_inline)
        for index, is_inline in enumerate((True, False, True))
    )


def test_an_engines_fields_in_a_block_are_noted() -> None:
    call = read(
        {**inline(), "uuid": "u", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "", "uuid": "v"}
    )
    assert call.foreign_fields == (("messages", 0, "content", 0, "uuid"), ("messages", 0, "content", 1, "uuid"))
    assert call.images[0].foreign_fields == ("uuid",)


def nested(depth: int) -> Any:
    return result(nested(depth - 1)) if depth else remote()


def test_blocks_in_blocks_have_an_end() -> None:
    assert len(read(nested(6)).images) == 1
    with pytest.raises(InvalidRequest, match="nested"):
        read(nested(7))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (7, "messages.0.content"),
        ([None], "messages.0.content.0"),
        ([{"type": ["image"]}], "messages.0.content.0.type"),
        ([{"type": "image_embeds"}], "messages.0.content.0"),
        ([{"type": "image"}], "messages.0.content.0.source"),
        ([{"type": "image", "source": "AA=="}], "messages.0.content.0.source"),
        ([{"type": "image", "source": {"data": "AA=="}}], "messages.0.content.0.source"),
        ([{"type": "image", "source": {"type": ["url"], "url": URL}}], "messages.0.content.0.source"),
        ([{"type": "image", "source": {"type": "file", "file_id": "f"}}], "messages.0.content.0.source"),
        ([inline("")], "messages.0.content.0.source.data"),
        ([inline(None)], "messages.0.content.0.source.data"),
        ([remote({})], "messages.0.content.0.source.url"),
        ([result(remote(""))], "messages.0.content.0.content.0.source.url"),
        ([{"type": "document"}], "messages.0.content.0.source"),
    ],
)
def test_what_cannot_be_answered_for_is_named(content: Any, part: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(messages=[{"role": "user", "content": content}])
    assert raised.value.part == part


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"messages": None}, "messages"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"system": 7}, "system"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"stream": 1}, "stream"),
        ({"model": 7}, "model"),
    ],
)
def test_a_misshapen_body_is_named(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(**body)
    assert raised.value.part == part


def test_every_error_has_the_envelope_and_a_type_of_anthropics() -> None:
    known = {
        "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large",
        "rate_limit_error", "api_error", "timeout_error", "overloaded_error",
    }  # fmt: skip
    for kind in all_errors():
        body = json.loads(MESSAGES.error_body(kind(), ID))
        assert body.keys() == {"type", "error", "request_id"}
        assert (body["type"], body["request_id"]) == ("error", "r-1")
        assert body["error"]["type"] in known
        assert (body["error"]["type"] in {"api_error", "timeout_error", "overloaded_error"}) == (kind.status >= 500)


def test_an_overload_spelled_as_anthropic_does_keeps_its_type() -> None:
    error = PoolSaturated()
    error.spelling = Spelling(529, "overloaded_error")
    assert json.loads(MESSAGES.error_body(error, ID))["error"]["type"] == "overloaded_error"


def test_the_part_at_fault_is_in_the_message() -> None:
    body = json.loads(MESSAGES.error_body(TooManyImages("Too many.", part="messages.0"), ID))
    assert body["error"] == {"type": "invalid_request_error", "message": "messages.0: Too many."}
    assert json.loads(MESSAGES.error_body(RouteNotFound(), ID))["error"]["type"] == "not_found_error"


def test_a_stream_ends_with_the_event_that_the_reference_names() -> None:
    (event,) = events_of(MESSAGES.stream_error(BackendLost(), ID))
    assert event.name == "error"
    assert json.loads(event.data) == json.loads(MESSAGES.error_body(BackendLost(), ID))


def stream(*usages: dict[str, Any]) -> bytes:
    start = {"type": "message_start", "message": {"content": [], "usage": usages[0]}}
    ends = [{"type": "message_delta", "delta": {}, "usage": usage} for usage in usages[1:]]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in [start, *ends]).encode()


def test_cached_tokens_belong_to_the_prompt() -> None:
    usage = {"input_tokens": 66, "output_tokens": 4, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 256}
    assert MESSAGES.usage(json.dumps({"content": [], "usage": usage}).encode(), streamed=False) == Usage(332, 4, 256)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        # vLLM: the first report counts the cached tokens in, the last one apart.
        (
            [
                {"input_tokens": 316, "output_tokens": 0},
                {"input_tokens": 60, "output_tokens": 7, "cache_read_input_tokens": 256},
            ],
            Usage(316, 7, 256),
        ),
        # Anthropic's own form, in which the end need not repeat the prompt.
        (
            [{"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1}, {"output_tokens": 7}],
            Usage(25, 7, 5),
        ),
        ([{"input_tokens": 20, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 7}], Usage(20, 7)),
        ([{"input_tokens": 20, "output_tokens": 1}], Usage(20, 1)),
        ([{"output_tokens": 1}, {"output_tokens": 7}], None),
    ],
)
def test_usage_of_a_stream(reports: list[dict[str, Any]], expected: Usage | None) -> None:
    assert MESSAGES.usage(stream(*reports), streamed=True) == expected


def test_a_count_reports_no_usage() -> None:
    assert COUNT is not None
    assert COUNT.usage(b'{"input_tokens": 322}', streamed=False) is None
