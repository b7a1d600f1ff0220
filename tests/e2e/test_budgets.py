"""Rates and fairness as clients meet them: real processes, the official SDK, the headers that it reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from gateway.api.auth import hash_key
from tests.e2e.processes import PATIENT_PROBES, Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

RATED, FLOOD, QUIET = "vgw-rated-0123456789", "vgw-flood-0123456789", "vgw-quiet-0123456789"
PICTURE = data_url(drawn.png(448, 448), "image/png")  # 196 tokens
FLOOD_REQUESTS, FLOOD_IMAGES = 10, 50


def messages(images: int, text: str) -> Any:
    parts: list[dict[str, object]] = [{"type": "image_url", "image_url": {"url": PICTURE}}] * images
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """Room for one flooding request at a time, each of which takes a third of a second."""
    with Engine(
        "--kv-tokens", "16384", "--max-model-len", "16384", "--encode-ms-per-patch", "0",
        "--prefill-tokens-per-s", "1e9", "--decode-tokens-per-s", "100", "--batch-slope", "0",
    ) as running:  # fmt: skip
        yield running


@pytest.fixture(scope="module")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    policies = write_policies(
        tmp_path_factory.mktemp("policies"),
        rated=f"tenant: rated\nkeys: ['{hash_key(RATED)}']\nqueue_timeout_s: 0\n"
        "rates: {images: 4/min, requests: 100/min}\n",
        flood=f"tenant: flood\nkeys: ['{hash_key(FLOOD)}']\nqueue_timeout_s: 60\n",
        quiet=f"tenant: quiet\nkeys: ['{hash_key(QUIET)}']\nqueue_timeout_s: 60\n",
    )
    words = ("--backend", engine.url, "--policies", str(policies), "--pool", "1")
    with Gateway(*words, environment=PATIENT_PROBES) as running:
        yield running


def client_of(gateway: Gateway, key: str) -> OpenAI:
    return OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0)


def test_a_rate_in_images_is_told_in_every_answer_and_refuses_with_its_rule(gateway: Gateway) -> None:
    with client_of(gateway, RATED) as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, max_tokens=2, messages=messages(3, "a"))
        assert (raw.headers["x-ratelimit-limit-images"], raw.headers["x-ratelimit-remaining-images"]) == ("4", "1")
        assert raw.headers["x-ratelimit-reset-images"] == "45s"
        assert (raw.headers["x-ratelimit-limit-requests"], raw.headers["x-ratelimit-remaining-requests"]) == (
            "100",
            "99",
        )
        with pytest.raises(openai.RateLimitError) as raised:
            client.chat.completions.create(model=MODEL, max_tokens=2, messages=messages(2, "b"))
        told = raised.value.response.headers
        assert raised.value.code == "rate_limit_exceeded"
        assert (told["x-vlmgw-rule"], told["x-ratelimit-remaining-images"]) == ("rates.images", "1")
        assert 1 <= int(told["retry-after"]) <= 20
        with pytest.raises(openai.BadRequestError) as never:
            client.chat.completions.create(model=MODEL, max_tokens=2, messages=messages(5, "c"))
        assert never.value.response.headers["x-vlmgw-rule"] == "rates.images"
    body = {"model": MODEL, "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(f"{gateway.url}/v1/messages", json=body, headers={"x-api-key": RATED}, timeout=30)
    assert answer.status_code == 200
    assert answer.headers["anthropic-ratelimit-requests-limit"] == "100"
    assert answer.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert gateway.metric("budget_refusals_total", rule="rates.images") == 1


def quietly(client: OpenAI) -> None:
    client.chat.completions.create(model=MODEL, max_tokens=2, messages=messages(1, "quiet"))


def test_a_flood_of_many_images_lets_another_tenant_pass(gateway: Gateway, engine: Engine) -> None:
    """The order in which requests reach the engine, as the fair queue's tests in virtual time have it.

    While the engine is frozen nothing ends and nothing is let in: who waits then is known.
    """
    engine.forget()
    ended: list[int] = []

    def asked() -> float:
        """How many requests of both have come. Read from their ends backwards: none is counted twice on its way."""
        over = sum(gateway.metric("tenant_requests_total", tenant=name) for name in ("flood", "quiet"))
        return over + gateway.metric("backend_inflight") + gateway.metric("budget_waiting_requests")

    large = messages(FLOOD_IMAGES, "flood")
    flooding = client_of(gateway, FLOOD)

    def flood() -> None:
        flooding.chat.completions.create(model=MODEL, max_tokens=32, messages=large, extra_body={"ignore_eos": True})
        ended.append(1)

    threads = [threading.Thread(target=flood) for _ in range(FLOOD_REQUESTS)]
    with engine.frozen():
        for thread in threads:
            thread.start()
        until(lambda: gateway.metric("budget_waiting_requests") == FLOOD_REQUESTS - 1, "a line of waiting requests")
    with client_of(gateway, QUIET) as client, ThreadPoolExecutor(1) as beside:
        for turn in range(FLOOD_REQUESTS + 1, FLOOD_REQUESTS + 4):
            before = len(engine.requests())
            with engine.frozen():
                quiet = beside.submit(quietly, client)
                until(lambda turn=turn: asked() == turn, "the quiet one")  # type: ignore[misc]
            quiet.result()
            came = [len(request["body"]["messages"][0]["content"]) for request in engine.requests()]
            # One of the flood's may be let in between our counting and the quiet one's arrival, and one before it.
            assert came.index(2, before) <= before + 2
    assert len(ended) < FLOOD_REQUESTS, "the flood was over before it could be in the way"
    for thread in threads:
        thread.join()
    flooding.close()
    assert len(ended) == FLOOD_REQUESTS
    until(lambda: gateway.metric("budget_reserved_tokens") == 0, "budgets that are whole again")
