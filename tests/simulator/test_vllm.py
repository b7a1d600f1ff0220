"""vLLM's chat, completion and tokenize routes, over HTTP and through the official SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.process import MODEL, SimulatorProcess, chat, events, image_part, joined_text, parsed_events

PHOTO = drawn.data_url(drawn.jpeg(640, 480))


@pytest.fixture
def sdk(vllm_process: SimulatorProcess, vllm_http: httpx.Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{vllm_process.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def _post(client: httpx.Client, body: dict[str, Any], **headers: str) -> httpx.Response:
    return client.post("/v1/chat/completions", json=body, headers=headers)


def test_a_picture_is_counted_and_described(vllm_http: httpx.Client) -> None:
    answer = _post(vllm_http, chat(image_part(PHOTO), "What is in the image?"), **{"X-Request-Id": "abc"}).json()
    assert answer["id"] == "chatcmpl-abc"
    assert "640x480 (300 tokens, #" in answer["choices"][0]["message"]["content"]
    usage = answer["usage"]
    assert usage["prompt_tokens_details"]["multimodal_tokens"] == {"image": 300}
    assert usage["prompt_tokens"] == 5 + 6 + 300 + 2 + 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_tokenize_agrees_with_usage(vllm_http: httpx.Client) -> None:
    body = chat("Before ", image_part(PHOTO), "after. Ünïcode too: 12345!")
    counted = vllm_http.post("/tokenize", json=body).json()
    assert counted["count"] == len(counted["tokens"]) == _post(vllm_http, body).json()["usage"]["prompt_tokens"]
    text = vllm_http.post("/tokenize", json={"model": MODEL, "prompt": "two words", "return_token_strs": True}).json()
    assert text["token_strs"] == ["two", " words"]


def test_the_same_request_again_is_cached_in_whole_blocks(vllm_http: httpx.Client) -> None:
    body = chat(image_part(PHOTO), "Hi", max_tokens=1)
    first, second = (_post(vllm_http, body).json()["usage"] for _ in range(2))
    length = first["prompt_tokens"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert first["prompt_tokens_details"]["created_cache_tokens"] == length - length % 16
    assert second["prompt_tokens_details"]["cached_tokens"] == length - length % 16


def test_salts_share_no_prefix(vllm_http: httpx.Client) -> None:
    body = chat("A long enough text to fill some blocks of the cache. " * 5, max_tokens=1)
    cached = [
        _post(vllm_http, body | {"cache_salt": salt}).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        for salt in ("a", "a", "b")
    ]
    assert cached[0] == 0 < cached[1]
    assert cached[2] == 0


def test_an_id_alone_answers_like_the_picture_until_the_cache_is_reset(vllm_http: httpx.Client) -> None:
    full = chat(image_part(PHOTO, uuid="u-1"), "Hi", logprobs=True, max_tokens=4)
    short = chat(image_part(None, uuid="u-1"), "Hi", logprobs=True, max_tokens=4)
    first, second = _post(vllm_http, full).json(), _post(vllm_http, short).json()
    assert first["choices"][0]["logprobs"] == second["choices"][0]["logprobs"]
    vllm_http.post("/reset_mm_cache")
    missed = _post(vllm_http, short)
    assert missed.status_code == 400
    assert missed.json()["error"]["message"] == "Cache miss for image at index 0 but data is not provided."


def test_log_probabilities_tell_pictures_apart(vllm_http: httpx.Client) -> None:
    def first(data: bytes) -> list[float]:
        body = chat(image_part(drawn.data_url(data)), "Hi", logprobs=True, top_logprobs=2, max_tokens=3)
        content = _post(vllm_http, body).json()["choices"][0]["logprobs"]["content"]
        assert all(len(entry["top_logprobs"]) == 2 for entry in content)
        return [entry["logprob"] for entry in content]

    turned = drawn.turned_jpeg(80, 40, 1)
    assert first(turned) == first(turned)
    assert first(turned) != first(drawn.jpeg(80, 40))


def test_a_stream_has_the_engines_shape(vllm_http: httpx.Client) -> None:
    body = chat("Hi", stream=True, max_tokens=3, stream_options={"include_usage": True})
    answer = _post(vllm_http, body)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert events(answer.text)[-1] == "[DONE]"
    chunks = parsed_events(answer.text)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, None, "length"]
    assert all("usage" not in chunk for chunk in chunks[:-1])
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 3)


def test_a_stream_says_what_the_whole_answer_says(vllm_http: httpx.Client) -> None:
    body = chat(image_part(PHOTO), "Say it")
    whole = _post(vllm_http, body).json()["choices"][0]["message"]["content"]
    streamed = _post(vllm_http, body | {"stream": True}).text
    assert joined_text(streamed, lambda entry: entry["choices"][0]["delta"]["content"]) == whole


def test_continuous_usage_is_in_every_chunk(vllm_http: httpx.Client) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = parsed_events(_post(vllm_http, chat("Hi", stream=True, max_tokens=2, stream_options=options)).text)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 1, 2, 2]
    assert chunks[0]["usage"]["prompt_tokens_details"] is None


def test_an_error_before_the_first_token_of_a_stream_is_plain_json(vllm_http: httpx.Client) -> None:
    answer = _post(vllm_http, chat(image_part(drawn.data_url(b"junk")), stream=True))
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    assert answer.json()["error"]["message"].startswith("Failed to load image: cannot identify image file")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (chat("x", model="nope"), 404, "The model `nope` does not exist. Valid aliases: Qwen/Qwen3-VL-8B-Instruct."),
        (chat(image_part(drawn.data_url(drawn.jpeg(99, 99)[:-2]))), 400, "image file is truncated"),
        (chat(image_part("data:image/png;base64,AA\nA=")), 400, "Non-base64 digit found"),
        (chat(image_part("data:image/svg+xml,<svg/>")), 501, "Only base64 data URLs are supported for now."),
        (chat(image_part(drawn.data_url(drawn.huge_png_header(20_000, 9_000)))), 500, "decompression bomb"),
        (chat(image_part("file:///etc/hostname")), 500, "--allowed-local-media-path"),
        (chat(image_part(drawn.data_url(drawn.png(2010, 10)))), 400, "Failed to apply Qwen3VLProcessor"),
        (chat("word " * 40_000), 400, "your prompt contains at least 32769 input tokens"),
        (chat("x", max_tokens=40_000), 400, "max_tokens=40000 cannot be greater than max_model_len=32768"),
        (chat("x", mm_processor_kwargs={"max_pixels": 9}), 400, "disabled by default"),
        ({"model": MODEL}, 400, "1 validation error:"),
    ],
)
def test_errors_have_the_engines_status_and_text(
    vllm_http: httpx.Client, body: dict[str, Any], status: int, text: str
) -> None:
    answer = _post(vllm_http, body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert text in error["message"]
    assert error["code"] == status


def test_pictures_and_text_together_above_the_context(vllm_http: httpx.Client) -> None:
    answer = _post(vllm_http, chat(*[image_part(drawn.data_url(drawn.jpeg(4000, 3000)))] * 3))
    assert answer.json()["error"]["message"] == ("Input length (35264) exceeds model's maximum context length (32768).")


def test_bodies_that_are_no_json(vllm_http: httpx.Client) -> None:
    typed = vllm_http.post("/v1/chat/completions", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (typed.status_code, typed.json()["error"]["type"]) == (400, "Bad Request")
    assert typed.json()["error"]["message"] == "Unsupported Media Type: Only 'application/json' is allowed"
    headers = {"Content-Type": "application/json"}
    broken = vllm_http.post("/v1/chat/completions", content=b"{", headers=headers)
    assert broken.json()["error"]["param"] == "body"
    coded = vllm_http.post("/v1/chat/completions", content=b"\x1f\x8b", headers=headers | {"Content-Encoding": "gzip"})
    assert (coded.status_code, list(coded.json())) == (400, ["detail"])


def test_a_lone_surrogate_is_answered(vllm_http: httpx.Client) -> None:
    body = json.dumps(chat("\ud800", cache_salt="\udfff")).encode()
    answer = vllm_http.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["choices"][0]["message"]["content"].endswith("You wrote: ?")


async def test_a_full_queue_is_503_without_retry_after(simulator: Starter) -> None:
    client, running = await simulator(max_num_queued_reqs=0)
    running.core.engine.pause()
    answer = await client.post("/v1/chat/completions", json=chat("Hi", stream=True))
    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "Service Unavailable"
    assert answer.json()["error"]["message"].startswith("The engine is currently busy")
    assert "retry-after" not in answer.headers


async def test_details_are_null_when_switched_off(simulator: Starter) -> None:
    client, _ = await simulator(prompt_tokens_details=False)
    answer = await client.post("/v1/chat/completions", json=chat(image_part(PHOTO)))
    assert answer.json()["usage"]["prompt_tokens_details"] is None


def test_the_load_report_comes_with_the_answer(vllm_http: httpx.Client) -> None:
    answer = _post(vllm_http, chat("Hi"), **{"endpoint-load-metrics-format": "json"})
    assert answer.headers["endpoint-load-metrics"].startswith('JSON {"named_metrics"')


def test_text_completions(vllm_http: httpx.Client) -> None:
    answer = vllm_http.post(
        "/v1/completions", json={"model": MODEL, "prompt": "Once upon", "max_tokens": 4, "logprobs": 1}
    )
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["tokens"]) == 4
    assert answer.json()["usage"]["prompt_tokens"] == 2
    ids = vllm_http.post("/v1/completions", json={"model": MODEL, "prompt": [[1, 2, 3]], "max_tokens": 1})
    assert ids.json()["usage"]["prompt_tokens"] == 3
    body = {"model": MODEL, "prompt": "Once upon", "stream": True, "stream_options": {"include_usage": True}}
    streamed = parsed_events(vllm_http.post("/v1/completions", json=body).text)
    assert streamed[-1]["usage"]["prompt_tokens"] == 2
    assert vllm_http.post("/v1/completions", json={"model": MODEL}).status_code == 400


def test_the_sdk_chats_with_pictures(sdk: openai.OpenAI) -> None:
    messages: Any = chat(image_part(PHOTO), "What is it?")["messages"]
    answer = sdk.chat.completions.create(model=MODEL, messages=messages, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert "640x480" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    stream = sdk.chat.completions.create(model=MODEL, messages=messages, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert text == answer.choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_the_sdk_receives_tool_calls(sdk: openai.OpenAI, stream: bool) -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    request: Any = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Please call tool for the weather"}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": parameters}}],
    }
    if stream:
        with sdk.chat.completions.stream(**request) as events_of_stream:
            message = events_of_stream.get_final_completion().choices[0]
    else:
        message = sdk.chat.completions.create(**request).choices[0]
    assert message.finish_reason == "tool_calls"
    assert message.message.tool_calls is not None
    call: Any = message.message.tool_calls[0]
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "simulated"}


def test_the_sdk_sees_errors_as_its_exceptions(sdk: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Hi"}]
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        sdk.chat.completions.create(model="nope", messages=messages)
    with pytest.raises(openai.BadRequestError, match="cannot be greater"):
        sdk.chat.completions.create(model=MODEL, messages=messages, max_tokens=99_999)


def test_json_mode(sdk: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Hi"}]
    answer = sdk.chat.completions.create(model=MODEL, messages=messages, response_format={"type": "json_object"})
    assert json.loads(answer.choices[0].message.content or "")["answer"].startswith("Simulated answer.")
