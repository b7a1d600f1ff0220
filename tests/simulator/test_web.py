"""Faults in streams as a client meets them, and what bodies become in records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import httpx
import pytest

from gateway.simulator.web import event
from tests.simulator.conftest import Starter
from tests.simulator.process import chat, events, parsed_events

STREAM = chat("Tell me something", stream=True)


def _order(client: httpx.Client, **fault: object) -> None:
    assert client.post("/sim/faults", json={"faults": [fault]}).status_code == 200


def _read_all(parts: Iterator[bytes], received: list[bytes]) -> None:
    for part in parts:
        received.append(part)  # noqa: PERF402 (what came before the failure is kept)


def test_an_event_is_compact_and_may_have_a_name() -> None:
    assert event({"a": "ü"}) == 'data: {"a":"ü"}\n\n'.encode()
    assert event({}, "ping") == b"event: ping\ndata: {}\n\n"


@pytest.mark.parametrize("kind", ["reset_mid_stream", "close_mid_stream"])
def test_a_stream_can_die_after_so_many_events(vllm_http: httpx.Client, kind: str) -> None:
    _order(vllm_http, kind=kind, after_events=3)
    with vllm_http.stream("POST", "/v1/chat/completions", json=STREAM) as answer:
        assert answer.status_code == 200
        parts = answer.iter_raw()
        received: list[bytes] = []
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            _read_all(parts, received)
    assert b"".join(received).count(b"data: ") <= 3
    assert vllm_http.get("/sim/requests").json()["requests"][0]["outcome"] == "faulted"
    assert vllm_http.post("/v1/chat/completions", json=STREAM).text.endswith("data: [DONE]\n\n")


def test_a_stream_can_carry_the_engines_error(vllm_http: httpx.Client) -> None:
    _order(vllm_http, kind="error_mid_stream", after_events=2)
    answer = vllm_http.post("/v1/chat/completions", json=STREAM)
    assert answer.status_code == 200
    assert parsed_events(answer.text)[-1]["error"]["code"] == 500
    assert events(answer.text)[-1] == "[DONE]"


def test_a_stream_can_fall_silent(vllm_http: httpx.Client) -> None:
    _order(vllm_http, kind="hang_mid_stream", after_events=1)
    with pytest.raises(httpx.ReadTimeout):
        vllm_http.post("/v1/chat/completions", json=STREAM, timeout=0.3)


def test_usage_can_drift(vllm_http: httpx.Client) -> None:
    honest = vllm_http.post("/v1/chat/completions", json=chat("Hi")).json()["usage"]["prompt_tokens"]
    _order(vllm_http, kind="usage_drift", tokens=7)
    drifted = vllm_http.post("/v1/chat/completions", json=chat("Hi")).json()["usage"]["prompt_tokens"]
    assert drifted == honest + 7


async def test_a_record_has_the_body_abridged_and_its_digest(simulator: Starter) -> None:
    client, _ = await simulator()
    body = json.dumps(chat("x" * 500)).encode()
    await client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    (record,) = (await client.get("/sim/requests")).json()["requests"]
    assert (record["body_bytes"], record["body_sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
    assert record["body"]["messages"][0]["content"][0]["text"] == "<500 characters>"
