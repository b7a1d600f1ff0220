"""Responses and Messages through the gateway, by the official SDKs: images arrive, and both sides count them alike."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.engine.chat import QUESTION, WRAPPER_TOKENS
from tests.engine.conftest import POLICY_CAP_PIXELS, Site
from tests.engine.pictures import data_url, drawn, jpeg, png

CLASSIFY = {"x-vlmgw-task": "classify"}
SMALL, LARGE = png(drawn(448, 448, seed=31)), jpeg(drawn(1600, 1200, seed=32))


@pytest.fixture
def messages(site: Site) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=site.gateway.url, api_key="unused", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{site.gateway.url}/v1", api_key="unused", max_retries=0, timeout=60) as made:
        yield made


def inline(file: bytes, media_type: str) -> Any:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(file).decode()}
    return {"type": "image", "source": source}


def asked(*blocks: Any) -> Any:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": QUESTION}]}]


def prompt_tokens(usage: anthropic.types.Usage) -> int:
    """What was read, read from a cache and written to one."""
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


def test_messages_are_counted_as_the_engine_counts(messages: anthropic.Anthropic, model: str) -> None:
    text = messages.messages.count_tokens(model=model, messages=asked()).input_tokens
    # The second one is declared wrongly, the third comes as a data URL; the cap of the task shrinks both large ones.
    images = [
        inline(SMALL, "image/png"),
        inline(LARGE, "image/png"),
        {"type": "image", "source": {"type": "url", "url": data_url(LARGE)}},
    ]
    raw = messages.messages.with_raw_response.create(
        model=model, max_tokens=1, messages=asked(*images), extra_headers=CLASSIFY
    )
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=2, recoded=0"
    expected = text + int(raw.headers["x-vlmgw-image-tokens"]) + len(images) * WRAPPER_TOKENS
    assert prompt_tokens(raw.parse().usage) == expected
    counted = messages.messages.count_tokens(model=model, messages=asked(*images), extra_headers=CLASSIFY)
    assert counted.input_tokens == expected
    assert int(raw.headers["x-vlmgw-image-tokens"]) < 3 * POLICY_CAP_PIXELS / 28**2


def test_messages_with_an_image_in_a_tool_result_and_a_stream(messages: anthropic.Anthropic, model: str) -> None:
    told: Any = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [inline(SMALL, "image/png")]}],
        },
    ]
    with messages.messages.stream(model=model, max_tokens=3, messages=told) as stream:
        final = stream.get_final_message()
        images = int(stream.response.headers["x-vlmgw-image-tokens"])
    assert final.usage.output_tokens >= 1
    assert prompt_tokens(final.usage) > images > 0


def test_an_error_of_the_engine_on_messages(messages: anthropic.Anthropic, model: str) -> None:
    with pytest.raises(anthropic.BadRequestError):
        messages.messages.create(model=model, max_tokens=1, messages=asked(), extra_body={"temperature": -2})


def given(*files: bytes) -> Any:
    images = [{"type": "input_image", "image_url": data_url(file), "detail": "auto"} for file in files]
    return [{"role": "user", "content": [*images, {"type": "input_text", "text": QUESTION}]}]


def test_responses_are_counted_as_the_engine_counts(client: openai.OpenAI, model: str) -> None:
    text = client.responses.create(model=model, input=given(), max_output_tokens=1).usage
    raw = client.responses.with_raw_response.create(
        model=model, input=given(SMALL, LARGE), max_output_tokens=1, extra_headers=CLASSIFY
    )
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"
    usage = raw.parse().usage
    assert text is not None
    assert usage is not None
    expected = text.input_tokens + int(raw.headers["x-vlmgw-image-tokens"]) + 2 * WRAPPER_TOKENS
    assert usage.input_tokens == expected


def test_responses_with_an_image_from_a_call_and_a_stream(client: openai.OpenAI, model: str) -> None:
    output = [{"type": "input_image", "image_url": data_url(SMALL), "detail": "auto"}]
    told: Any = [
        {"role": "user", "content": QUESTION},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": output},
    ]
    events = list(client.responses.create(model=model, input=told, max_output_tokens=3, stream=True))
    (last,) = [event.response for event in events if event.type in ("response.completed", "response.incomplete")]
    assert last.usage is not None
    assert last.usage.input_tokens > 196
