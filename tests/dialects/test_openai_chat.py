from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from gateway.dialects import DIALECTS, dialect_of
from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import (
    BackendLost,
    GatewayError,
    InvalidRequest,
    KvBudgetExhausted,
    ModelNotFound,
    NoBackend,
    Spelling,
    TooManyImages,
    all_errors,
)
from gateway.types import Call, MediumKind, OtherMedium, RequestId, Usage
from tests.events import events_of

CHAT = OpenAIChat()
ID = RequestId("r-1")
URL = "https://example.com/a.png"


def read(**body: Any) -> Call:
    return CHAT.read({"model": "m", "messages": [{"role": "user", "content": "hi"}], **body})


def of_parts(*parts: Any, role: str = "user") -> Call:
    return read(messages=[{"role": role, "content": list(parts)}])


def image(url: Any = URL, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def test_a_plain_request() -> None:
    call = read()
    assert call == Call(
        model="m",
        stream=False,
        wants_usage=True,
        output_limit_tokens=None,
        images=(),
        text_bytes=2,
        message_count=1,
    )


def test_the_registry_knows_the_path() -> None:
    assert dialect_of("/v1/chat/completions") in DIALECTS
    assert dialect_of("/v1/models") is None


@given(
    st.lists(st.lists(st.sampled_from(["text", "bare", "image", "string", "untyped", "input"]), max_size=5), max_size=5)
)
def test_images_planted_are_images_found_in_order(plan: list[list[str]]) -> None:
    planted: list[tuple[str, int]] = []
    messages = []
    for index, kinds in enumerate(plan):
        content: list[Any] = []
        for kind in kinds:
            url = f"https://example.com/{len(planted)}.png"
            shapes: dict[str, Any] = {
                "text": {"type": "text", "text": url},
                "bare": url,
                "image": image(url),
                "string": {"type": "image_url", "image_url": url},
                "untyped": {"image_url": {"url": url}},
                "input": {"type": "input_image", "image_url": url, "detail": "low"},
            }
            content.append(shapes[kind])
            if kind not in ("text", "bare"):
                planted.append((url, index))
        messages.append({"role": "tool", "content": content})
    call = read(messages=messages)
    assert [(each.source, each.pointer[1]) for each in call.images] == planted
    for each in call.images:
        value: Any = {"messages": messages}
        for step in each.pointer:
            value = value[step]
        assert value == each.source


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
def test_any_role_may_hold_images(role: str) -> None:
    assert of_parts("a", image(), role=role).images[0].name == "messages.0.content.1.image_url"


def test_how_a_source_stood_is_noted() -> None:
    parts = of_parts(
        image(detail="low"),
        {"type": "image_url", "image_url": URL},
        {"image_url": {"url": URL}},
        {"type": "input_image", "image_url": URL, "detail": "high"},
    ).images
    assert [(each.wrap, each.retype, each.detail) for each in parts] == [
        (False, False, "low"),
        (True, False, None),
        (False, True, None),
        (True, True, "high"),
    ]
    assert parts[1].pointer == ("messages", 0, "content", 1, "image_url")
    assert parts[1].part == ("messages", 0, "content", 1)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": None},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": {"url": 7}},
        {"type": "image_url", "image_url": {"url": ""}},
        {"type": "image_url", "image_url": ["https://example.com"]},
        {"type": "image_url", "image_url": None, "uuid": "u-a"},
        {"type": "input_image", "file_id": "f"},
        {"image_url": None},
    ],
)
def test_an_image_without_a_source_is_named(part: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        of_parts("text", part)
    assert caught.value.part == "messages.0.content.1.image_url"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [1]}, "messages.0"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": {"type": "text"}}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [None]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": ["image_url"]}]}]}, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": [{"type": {"a": 1}}]}]}, "messages.0.content.0.type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_embeds", "image_embeds": "x"}]}]},
            "messages.0.content.0",
        ),
        ({"messages": [{"role": "user", "content": [{"image_embeds": "x"}]}]}, "messages.0.content.0"),
        ({"model": 7}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.5}, "n"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": "9"}, "max_completion_tokens"),
    ],
)
def test_what_is_misshapen_is_refused_by_name(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert caught.value.part == part


def test_messages_must_be_there() -> None:
    with pytest.raises(InvalidRequest, match="messages"):
        CHAT.read({"model": "m"})


def test_null_is_absence() -> None:
    call = read(model=None, stream=None, n=None, max_tokens=None, user=None, metadata=None, priority=None, tools=None)
    assert (call.model, call.stream, call.choices, call.output_limit_tokens, call.foreign_fields) == (
        None,
        False,
        1,
        None,
        (),
    )


def test_limits_choices_and_usage() -> None:
    assert read(max_tokens=5, max_completion_tokens=9).output_limit_tokens == 9
    assert read(max_tokens=0).output_limit_tokens == 0
    assert read(n=3).choices == 3
    assert read(stream=True).wants_usage is False
    assert read(stream=True, stream_options={"include_usage": True}).wants_usage is True
    assert read(stream=True, stream_options={"include_usage": 1}).wants_usage is False


def test_counts_nobody_could_compute_with_are_read_as_very_many() -> None:
    call = read(n=10**400, max_tokens=10**400)
    assert call.output_limit_tokens is not None
    assert call.choices * call.output_limit_tokens < 2**63


def test_user_and_task() -> None:
    assert read(user="u", metadata={"vlmgw_task": "ocr"}).task == "ocr"
    assert read(metadata={"task": "ocr", "vlmgw_task": "chat"}).task == "chat"
    assert read(metadata={"vlmgw_task": 7}).task is None
    assert read(metadata={"task": "the client's own"}).task is None
    assert read(metadata="ocr").task is None
    assert read(user="u").user == "u"


def test_text_is_counted_wherever_a_template_prints_it() -> None:
    assert of_parts({"type": "text", "text": "caf\u00e9"}, "abc", image()).text_bytes == 8
    assert of_parts({"type": "text", "text": "<|image_pad|>"}).images == ()
    call = {"id": "c", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "name": "n", "reasoning": "hm"}
    assert read(messages=[message]).text_bytes == 9
    assert read(tools=[{"a": 1}]).text_bytes == 2 + len('[{"a": 1}]')


def test_other_media_are_named() -> None:
    call = of_parts(
        {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4", "content_hash": "x"}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        {"audio_url": {"url": "https://example.com/a"}, "uuid": "u"},
    )
    at = ("messages", 0, "content")
    video, sound, remote = (*at, 0, "video_url", "url"), (*at, 1, "input_audio", "data"), (*at, 2, "audio_url", "url")
    audio = MediumKind.AUDIO
    assert call.other_media == (
        OtherMedium("messages.0.content.0.video_url", False, MediumKind.VIDEO, video, "https://example.com/v.mp4"),
        OtherMedium("messages.0.content.1.input_audio", True, audio, sound, "AA", is_bare=True),
        OtherMedium("messages.0.content.2.audio_url", False, audio, remote, "https://example.com/a"),
    )
    assert call.foreign_fields == (
        ("messages", 0, "content", 0, "video_url", "content_hash"),
        ("messages", 0, "content", 2, "uuid"),
    )


def test_engine_fields_are_pointed_at() -> None:
    part = {**image(content_hash="sha256:0", max_dynamic_patch=3), "uuid": "u"}
    call = read(
        messages=[{"role": "user", "content": [part]}],
        cache_salt="s",
        priority=0,
        mm_processor_kwargs={},
        chat_template_kwargs={"enable_thinking": False},
        guided_json={},
    )
    assert call.foreign_fields == (
        ("cache_salt",),
        ("priority",),
        ("mm_processor_kwargs",),
        ("messages", 0, "content", 0, "uuid"),
        ("messages", 0, "content", 0, "image_url", "content_hash"),
        ("messages", 0, "content", 0, "image_url", "max_dynamic_patch"),
    )
    assert call.images[0].foreign_fields == ("uuid", "image_url.content_hash", "image_url.max_dynamic_patch")


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "image_url", "url", "text", "content", "role", "tool_calls", "function", "name", "uuid"]
            ),
            inner | st.sampled_from(["image_url", "text", "input_image"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(Json, max_size=3), st.dictionaries(st.sampled_from(["n", "stream", "metadata", "tools", "user"]), Json))
def test_any_shape_is_read_or_refused_by_name(messages: list[Any], more: dict[str, Any]) -> None:
    parts: list[str | None] = []
    try:
        read(messages=messages, **more)
    except InvalidRequest as error:
        parts.append(error.part)
    assert all(parts)


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_is_one_the_sdk_understands(kind: type[GatewayError]) -> None:
    error = kind(part="messages.0.content.0", detail="secret")
    envelope = json.loads(CHAT.error_body(error, ID))
    assert set(envelope) == {"error"}
    fields = envelope["error"]
    assert fields["message"].startswith("messages.0.content.0: ")
    assert fields == {
        "message": fields["message"],
        "type": kind.openai_type,
        "param": "messages.0.content.0",
        "code": kind.code,
    }
    assert "secret" not in json.dumps(envelope)


def test_an_error_without_a_part_has_no_param() -> None:
    assert json.loads(CHAT.error_body(TooManyImages("At most 4."), ID))["error"] == {
        "message": "At most 4.",
        "type": "invalid_request_error",
        "param": None,
        "code": "too_many_images",
    }


@contextmanager
def sdk(status: int, content_type: str, body: bytes) -> Iterator[openai.OpenAI]:
    """The official client of a server that always gives this answer."""

    class Always(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class names it)
            pass

    with HTTPServer(("127.0.0.1", 0), Always) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with openai.OpenAI(
                api_key="k", base_url=f"http://127.0.0.1:{server.server_port}/v1", max_retries=0
            ) as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (TooManyImages("At most 4.", part="messages"), openai.BadRequestError),
        (ModelNotFound(), openai.NotFoundError),
        (KvBudgetExhausted(), openai.RateLimitError),
        (NoBackend(), openai.InternalServerError),
    ],
)
def test_the_sdk_raises_what_the_error_means(error: GatewayError, raised: type[openai.APIStatusError]) -> None:
    answer = CHAT.error_body(error, ID)
    with sdk(error.status, "application/json", answer) as client, pytest.raises(raised) as caught:
        client.chat.completions.create(model="m", messages=[])
    assert (caught.value.code, caught.value.type, caught.value.param) == (error.code, error.openai_type, error.part)


def test_the_sdk_raises_on_a_stream_error() -> None:
    event = CHAT.stream_error(BackendLost(), ID)
    assert len(events_of(event)) == 1
    with sdk(200, "text/event-stream", event) as client, pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model="m", messages=[], stream=True))
    assert caught.value.code == "backend_lost"


def test_usage_is_found_in_what_the_sdk_calls_a_completion() -> None:
    body = ChatCompletion.model_validate(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
        }
    ).model_dump_json()
    assert CHAT.usage(body.encode(), streamed=False) == Usage(3, 1)


def test_what_policies_ask_of_a_request_besides_its_images() -> None:
    assert read(tools=[{"type": "function"}]).has_tools
    assert read(functions=[{"name": "f"}]).has_tools
    assert not read(tools=[]).has_tools
    assert read(max_tokens=5).output_limit_field == read().output_limit_field == "max_tokens"
    assert read(max_completion_tokens=5, max_tokens=4).output_limit_field == "max_completion_tokens"


def test_a_vendors_word_for_an_error_stands_in_the_envelope() -> None:
    error = TooManyImages()
    error.spelling = Spelling(400, "array_too_long")
    assert json.loads(CHAT.error_body(error, ID))["error"]["code"] == "array_too_long"
