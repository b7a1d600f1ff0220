from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from gateway.simulator.anthropic import chat_body
from gateway.simulator.refusal import Refusal
from tests.simulator import drawn
from tests.simulator.process import MODEL, SimulatorProcess

PHOTO: dict[str, Any] = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/jpeg",
        "data": base64.b64encode(drawn.jpeg(640, 480)).decode(),
    },
}


@pytest.fixture
def sdk(vllm_process: SimulatorProcess, vllm_http: httpx.Client) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=vllm_process.url, api_key="none", max_retries=0) as client:
        yield client


def _messages(*blocks: Any) -> Any:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "What is it?"}]}]


def test_the_sdk_gets_an_answer_and_uncached_usage(sdk: anthropic.Anthropic) -> None:
    request: Any = {"model": MODEL, "max_tokens": 100, "messages": _messages(PHOTO)}
    first, second = sdk.messages.create(**request), sdk.messages.create(**request)
    block = first.content[0]
    assert block.type == "text"
    assert "640x480 (300 tokens" in block.text
    assert first.stop_reason == "end_turn"
    assert first.usage.cache_read_input_tokens == 0
    assert (second.usage.cache_read_input_tokens or 0) + second.usage.input_tokens == first.usage.input_tokens


def test_the_sdk_reads_a_stream(sdk: anthropic.Anthropic) -> None:
    with sdk.messages.stream(model=MODEL, max_tokens=3, messages=_messages(PHOTO)) as stream:
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("max_tokens", 3)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_sdk_receives_tool_use(sdk: anthropic.Anthropic, is_streamed: bool) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    request: Any = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "call tool now"}],
        "tools": [{"name": "weather", "input_schema": schema}],
    }
    if is_streamed:
        with sdk.messages.stream(**request) as stream:
            final = stream.get_final_message()
    else:
        final = sdk.messages.create(**request)
    block = final.content[0]
    assert block.type == "tool_use"
    assert (block.name, block.input, final.stop_reason) == ("weather", {"city": "simulated"}, "tool_use")


def test_counting_agrees_with_usage(sdk: anthropic.Anthropic) -> None:
    counted = sdk.messages.count_tokens(model=MODEL, messages=_messages(PHOTO))
    used = sdk.messages.create(model=MODEL, max_tokens=1, messages=_messages(PHOTO)).usage
    assert counted.input_tokens == used.input_tokens + (used.cache_read_input_tokens or 0)


def test_errors_have_the_messages_envelope(vllm_http: httpx.Client) -> None:
    body = {"model": "nope", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    answer = vllm_http.post("/v1/messages", json=body)
    assert answer.status_code == 404
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "not_found_error"
    assert vllm_http.post("/v1/messages", json={"model": MODEL, "messages": []}).status_code == 400


def test_pictures_in_tool_results_become_tool_messages() -> None:
    result: Any = {"type": "tool_result", "tool_use_id": "t", "content": [PHOTO]}
    body = chat_body(
        {"system": "S", "messages": [{"role": "user", "content": [result, {"type": "text", "text": "x"}]}]}
    )
    messages: Any = body["messages"]
    assert [message["role"] for message in messages] == ["system", "tool", "user"]
    assert messages[1]["content"][0]["image_url"]["url"].startswith("data:image/jpeg;base64,")


def test_tool_use_urls_and_cache_control_are_translated() -> None:
    blocks: Any = [
        {"type": "tool_use", "name": "f", "input": {"a": 1}},
        {"type": "image", "source": {"type": "url", "url": "http://x.example.test/a.png"}},
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
    ]
    messages: Any = chat_body({"messages": [{"role": "assistant", "content": blocks}]})["messages"]
    assert messages[0]["content"] == [
        {"type": "text", "text": '{"name": "f", "arguments": {"a": 1}}'},
        {"type": "image_url", "image_url": {"url": "http://x.example.test/a.png"}},
        {"type": "text", "text": "t"},
    ]


@pytest.mark.parametrize(
    "body", [{}, {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]}]
)
def test_what_cannot_be_translated_is_400(body: Any) -> None:
    with pytest.raises(Refusal) as caught:
        chat_body(body)
    assert caught.value.status == 400
