"""Same answer: what the engine computes through the gateway is what it computes without it.

Weights are random but wide, so the logprobs of an answer are a fingerprint of the picture that reached the model.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.engine.chat import Answer, ask, body
from tests.engine.conftest import Site
from tests.engine.pictures import drawn, jpeg, png, upright, webp, with_orientation

# One prompt computed in one piece or from cached blocks on: the order of float32 additions differs.
SAME = 1e-3


def fingerprint(url: str, model: str, file: bytes) -> list[float]:
    return ask(url, body(model, file, logprobs=True, top_logprobs=20)).logprobs


def distance(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def answered(url: str, request: dict[str, Any]) -> Answer:
    return ask(url, request | {"logprobs": True, "max_tokens": 8})


@pytest.mark.parametrize("encode", [jpeg, png, webp])
def test_an_untouched_picture_gets_the_same_answer(site: Site, model: str, encode: Any) -> None:
    request = body(model, encode(drawn(640, 480, seed=11)))
    direct = answered(site.engines[model].url, request)
    through = answered(site.gateway.url, request)
    assert through.images == "passed=1, shrunk=0, recoded=0"
    assert through.answer[0] == direct.answer[0]
    assert through.answer[1] == pytest.approx(direct.answer[1], abs=SAME)
    other = answered(site.gateway.url, body(model, encode(drawn(640, 480, seed=190))))
    assert other.answer[1] != pytest.approx(direct.answer[1], abs=10 * SAME)


def test_text_alone_gets_the_same_answer(site: Site, model: str) -> None:
    request = body(model)
    direct, through = answered(site.engines[model].url, request), answered(site.gateway.url, request)
    assert through.answer[0] == direct.answer[0]
    assert through.answer[1] == pytest.approx(direct.answer[1], abs=SAME)
    assert through.document["usage"]["prompt_tokens"] == direct.document["usage"]["prompt_tokens"]


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_turned_picture_arrives_upright(site: Site, model: str, orientation: int) -> None:
    """Lossless all the way, hence the same pixels: PNG with an eXIf chunk against the picture turned before."""
    stored = drawn(330, 220, seed=orientation)
    turned = png(stored, orientation=orientation)
    through = ask(site.gateway.url, body(model, turned, logprobs=True, top_logprobs=20))
    assert through.images.endswith("recoded=1")
    expected = fingerprint(site.engines[model].url, model, png(upright(stored, orientation)))
    assert through.logprobs == pytest.approx(expected, abs=SAME)
    assert distance(expected, fingerprint(site.engines[model].url, model, png(stored))) > 10 * SAME


def test_a_turned_jpeg_arrives_upright(site: Site, model: str) -> None:
    """JPEG loses a little on the way, far less than a turn would change."""
    stored = drawn(640, 448, seed=3)
    through = fingerprint(site.gateway.url, model, with_orientation(jpeg(stored), 6))
    expected = fingerprint(site.engines[model].url, model, png(upright(stored, 6)))
    lying = fingerprint(site.engines[model].url, model, png(stored))
    assert distance(through, expected) < distance(lying, expected) / 4


def stream(url: str, request: dict[str, Any]) -> tuple[httpx.Headers, list[str]]:
    """The data of all events."""
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=request, timeout=120, trust_env=False) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = list(response.iter_lines())
    return response.headers, [line.removeprefix("data: ") for line in lines if line]


def test_a_stream_tells_its_usage(site: Site, model: str) -> None:
    fields = {"max_tokens": 6, "stream": True, "stream_options": {"include_usage": True}}
    request = body(model, jpeg(drawn(500, 333, seed=5)), **fields)
    headers, events = stream(site.gateway.url, request)
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    usage = chunks[-1]["usage"]
    assert chunks[-1]["choices"] == []
    assert usage["prompt_tokens_details"]["multimodal_tokens"]["image"] == int(headers["x-vlmgw-image-tokens"])
    _, direct = stream(site.engines[model].url, request)
    texts = [
        "".join(choice["delta"].get("content") or "" for chunk in answer for choice in chunk["choices"])
        for answer in (chunks, [json.loads(event) for event in direct[:-1]])
    ]
    assert texts[0] == texts[1]


def test_a_stream_without_usage_stays_without(site: Site, model: str) -> None:
    _, events = stream(site.gateway.url, body(model, stream=True, max_tokens=3))
    assert events[-1] == "[DONE]"
    assert not any("usage" in json.loads(event) for event in events[:-1])


ENGINE_ERRORS: list[dict[str, Any]] = [
    {"frequency_penalty": 9},
    {"temperature": -2},
    {"top_p": 5},
    {"response_format": {"type": "json_schema"}},
]


@pytest.mark.parametrize("fields", ENGINE_ERRORS, ids=lambda fields: next(iter(fields)))
def test_an_error_of_the_engine_passes_unchanged(site: Site, model: str, fields: dict[str, Any]) -> None:
    request = body(model, **fields)
    direct, through = (
        httpx.post(f"{url}/v1/chat/completions", json=request, timeout=60, trust_env=False)
        for url in (site.engines[model].url, site.gateway.url)
    )
    assert direct.status_code >= 400
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
