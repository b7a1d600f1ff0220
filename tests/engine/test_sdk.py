"""The official `openai` client, unmodified, with nothing changed but its base URL."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.engine.chat import QUESTION
from tests.engine.conftest import Site
from tests.engine.pictures import data_url, drawn, jpeg


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{site.gateway.url}/v1", api_key="unused", max_retries=0, timeout=60) as client:
        yield client


def messages(url: str) -> list[ChatCompletionMessageParam]:
    return [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
                {"type": "text", "text": QUESTION},
            ],
        }
    ]


PICTURE = messages(data_url(jpeg(drawn(640, 480, seed=21))))


def test_models(client: openai.OpenAI, site: Site) -> None:
    assert {model.id for model in client.models.list()} == set(site.engines)


def test_chat_with_an_image(client: openai.OpenAI, model: str) -> None:
    raw = client.chat.completions.with_raw_response.create(model=model, messages=PICTURE, max_tokens=4, temperature=0)
    completion = raw.parse()
    assert completion.model == model
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage is not None
    assert completion.usage.completion_tokens == 4
    assert int(raw.headers["x-vlmgw-image-tokens"]) < completion.usage.prompt_tokens


def test_streaming(client: openai.OpenAI, model: str) -> None:
    stream = client.chat.completions.create(
        model=model,
        messages=PICTURE,
        max_tokens=5,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    chunks = list(stream)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "length"


def test_tools(client: openai.OpenAI, model: str) -> None:
    """Tiny models call nothing; the definitions must get through."""
    completion = client.chat.completions.create(
        model=model,
        messages=PICTURE,
        max_tokens=2,
        tools=[{"type": "function", "function": {"name": "crop", "parameters": {"type": "object", "properties": {}}}}],
        tool_choice="none",
    )
    assert completion.choices[0].message.role == "assistant"


def test_an_unknown_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="nobody-serves-this", messages=PICTURE)
    assert "nobody-serves-this" in caught.value.message


def test_an_error_of_the_engine(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=PICTURE, temperature=-2)
    assert "temperature" in caught.value.message


def test_a_broken_picture_is_named(client: openai.OpenAI, model: str) -> None:
    broken = messages(data_url(jpeg(drawn(640, 480))[:2000]))
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=broken)
    assert str(caught.value.param).startswith("messages.0.content.0.image_url")


def test_a_timeout(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).chat.completions.create(
            model=model, messages=PICTURE, max_tokens=15000, extra_body={"ignore_eos": True}
        )
