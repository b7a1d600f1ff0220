from __future__ import annotations

import hashlib
from typing import Any

import httpx
import openai
import pytest

from gateway.simulator.settings import EngineKind
from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.process import MODEL, SimulatorProcess, chat, events, image_part, joined_text, parsed_events

DATA = drawn.jpeg(640, 480)
PHOTO = drawn.data_url(DATA)
MARKS = "<|vision_start|><|image_pad|><|vision_end|>"


def _post(client: httpx.Client, body: dict[str, Any]) -> httpx.Response:
    return client.post("/v1/chat/completions", json=body)


def test_a_picture_is_counted_in_usage(sglang_http: httpx.Client) -> None:
    body = chat(image_part(PHOTO), "What is it?", rid="my-rid")
    first, second = _post(sglang_http, body).json(), _post(sglang_http, body).json()
    assert first["id"] == "my-rid"
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0, "image_tokens": 300}
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert "640x480 (300 tokens" in first["choices"][0]["message"]["content"]


def test_vllms_uuid_is_accepted_and_lost(sglang_http: httpx.Client) -> None:
    answer = _post(sglang_http, chat(image_part(PHOTO, uuid="u")))
    assert answer.status_code == 200
    assert _post(sglang_http, chat(image_part(None, uuid="u"))).status_code == 400


def test_the_model_is_not_checked(sglang_http: httpx.Client) -> None:
    assert _post(sglang_http, chat("Hi", model="nope")).status_code == 200


def test_orientation_tags_are_not_applied(sglang_http: httpx.Client) -> None:
    answer = _post(sglang_http, chat(image_part(drawn.data_url(drawn.turned_jpeg(80, 40, 6)))))
    assert "80x40" in answer.json()["choices"][0]["message"]["content"]


def test_a_content_hash_is_compared_with_the_bytes(sglang_http: httpx.Client) -> None:
    def part(digest: str) -> dict[str, object]:
        return {"type": "image_url", "image_url": {"url": PHOTO, "content_hash": f"sha256:{digest}"}}

    assert _post(sglang_http, chat(part(hashlib.sha256(DATA).hexdigest()))).status_code == 200
    wrong = _post(sglang_http, chat(part("0" * 64)))
    assert wrong.status_code == 400
    assert wrong.json()["message"].startswith("content hash mismatch for media_data[0]: expected sha256:000")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (chat({"type": "hologram"}), 400, "unsupported content part type 'hologram'"),
        (chat({"type": "image_url", "image_url": PHOTO}), 400, "image_url.url"),
        (chat(image_part(PHOTO) | {"image_url": {"url": PHOTO, "detail": "original"}}), 400, "detail"),
        (chat(image_part("data:image/png;base64,A-_=")), 400, "Non-base64"),
        (chat(image_part(drawn.data_url(b"junk"))), 500, "cannot identify"),
        (chat("word " * 40_000), 400, "is longer than the model's context length (32768 tokens)."),
        (chat("x", max_tokens=32_768), 400, "Requested token count exceeds"),
        (chat("x", temperature=-1), 400, "non-negative"),
        ({}, 400, "body.messages"),
        ({"messages": [{"content": "x"}]}, 400, "body.messages.0.role"),
    ],
)
def test_errors_are_flat(sglang_http: httpx.Client, body: dict[str, Any], status: int, text: str) -> None:
    answer = _post(sglang_http, body)
    assert answer.status_code == status
    error = answer.json()
    assert text in error["message"]
    assert (error["object"], error["code"], error["param"]) == ("error", status, None)


async def test_the_picture_limit(simulator: Starter) -> None:
    client, _ = await simulator(engine=EngineKind.SGLANG, limit_images=1)
    answer = await client.post("/v1/chat/completions", json=chat(image_part(PHOTO), image_part(PHOTO)))
    assert answer.json()["message"] == "Image count 2 exceeds limit 1 per request."
    answer = await client.post("/generate", json={"text": "x", "image_data": [PHOTO, PHOTO]})
    assert (answer.status_code, list(answer.json())) == (400, ["error"])


async def test_a_full_queue_is_503_or_an_event_in_a_200_stream(simulator: Starter) -> None:
    client, running = await simulator(engine=EngineKind.SGLANG, max_num_queued_reqs=0)
    running.core.engine.pause()
    plain = await client.post("/v1/chat/completions", json=chat("Hi"))
    assert (plain.status_code, plain.json()["message"]) == (503, "The request queue is full.")
    streamed = await client.post("/v1/chat/completions", json=chat("Hi", stream=True))
    assert streamed.status_code == 200
    assert events(streamed.text)[-1] == "[DONE]"
    assert parsed_events(streamed.text)[0]["error"]["code"] == 503
    native = await client.post("/generate", json={"text": "x", "stream": True})
    assert parsed_events(native.text)[0]["error"]["code"] == 503


def test_a_stream_says_what_the_whole_answer_says(sglang_http: httpx.Client) -> None:
    body = chat(image_part(PHOTO), "Say it")
    whole = _post(sglang_http, body).json()
    answer = _post(sglang_http, body | {"stream": True, "stream_options": {"include_usage": True}}).text
    chunks = parsed_events(answer)
    assert chunks[-1]["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    said = "".join(entry["choices"][0]["delta"].get("content") or "" for entry in chunks[:-1])
    assert said == whole["choices"][0]["message"]["content"]


def test_the_sdk_works(sglang_process: SimulatorProcess, sglang_http: httpx.Client) -> None:
    with openai.OpenAI(base_url=f"{sglang_process.url}/v1", api_key="none", max_retries=0) as sdk:
        tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
        messages: Any = [{"role": "user", "content": "call tool"}]
        answer = sdk.chat.completions.create(model=MODEL, messages=messages, tools=tools)
        assert answer.choices[0].finish_reason == "tool_calls"
        with sdk.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            final = stream.get_final_completion()
        assert final.choices[0].message.tool_calls


def test_generate_puts_pictures_where_the_marks_are(sglang_http: httpx.Client) -> None:
    marked = sglang_http.post("/generate", json={"text": f"a{MARKS}b", "image_data": PHOTO, "rid": "r"}).json()
    assert marked["meta_info"]["prompt_tokens"] == 1 + 302 + 1
    assert (marked["meta_info"]["id"], marked["meta_info"]["finish_reason"]) == ("r", {"type": "stop"})
    unmarked = sglang_http.post("/generate", json={"text": "ab", "image_data": [{"url": PHOTO}]}).json()
    assert unmarked["meta_info"]["prompt_tokens"] == 302 + 1
    assert sglang_http.put("/generate", json={"text": "ab"}).status_code == 200
    bare = PHOTO.partition(",")[2]
    assert sglang_http.post("/generate", json={"text": "ab", "image_data": [bare]}).status_code == 200


def test_generate_checks_hashes_and_streams_cumulatively(sglang_http: httpx.Client) -> None:
    body: dict[str, Any] = {"text": "x", "image_data": [PHOTO], "mm_content_hashes": ["sha256:" + "0" * 64]}
    refused = sglang_http.post("/generate", json=body)
    assert refused.json()["error"]["message"].startswith("content hash mismatch")
    parameters = {"max_new_tokens": 3}
    streamed = parsed_events(
        sglang_http.post("/generate", json={"text": "x", "stream": True, "sampling_params": parameters}).text
    )
    assert [entry["text"] for entry in streamed] == ["Simulated", "Simulated answer", "Simulated answer."]
    assert streamed[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 3}
    assert sglang_http.post("/generate", json={}).status_code == 400


def test_tokenize_leaves_pictures_unexpanded(sglang_http: httpx.Client) -> None:
    body = chat(image_part("http://never.example.test/a.png"), "Hi")
    assert sglang_http.post("/tokenize", json=body).json()["count"] == 5 + 3 + 1 + 3
    assert sglang_http.post("/v1/tokenize", json={"prompt": "two words"}).json()["count"] == 2


def test_joined_text_reads_nothing_from_errors() -> None:
    assert joined_text('data: {"a": null}\n\ndata: [DONE]\n', lambda entry: entry["a"]) == ""
