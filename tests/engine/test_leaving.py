"""A client that leaves: the engine stops generating for nobody."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.engine.chat import body
from tests.engine.conftest import Site
from tests.engine.pictures import drawn, jpeg
from tests.engine.vllm import VllmServer, wait_until

# Five minutes, unless somebody stops it; at this pace the engine's front end hears of the leaving (plugins/pace.py).
ENDLESS = {"max_tokens": 15000, "ignore_eos": True, "vllm_xargs": {"pace_ms": 20}}
STOP_DEADLINE_S = 20.0


@pytest.fixture
def engine(site: Site, model: str) -> Iterator[VllmServer]:
    """An engine with nothing to do, before and after."""
    engine = site.engines[model]
    wait_until(lambda: engine.running_requests() == 0, STOP_DEADLINE_S, "the engine is idle")
    before = engine.generated_tokens()
    yield engine
    wait_until(lambda: engine.running_requests() == 0, STOP_DEADLINE_S, "the engine has stopped")
    assert 0 < engine.generated_tokens() - before < ENDLESS["max_tokens"]


def test_leaving_a_stream(site: Site, engine: VllmServer) -> None:
    request = body(engine.served_name, jpeg(drawn(320, 240)), stream=True) | ENDLESS
    url = f"{site.gateway.url}/v1/chat/completions"
    with httpx.stream("POST", url, json=request, timeout=60, trust_env=False) as response:
        assert any(_has_content(line) for line in response.iter_lines()), "the engine generates"


def test_leaving_before_the_answer(site: Site, engine: VllmServer) -> None:
    document = json.dumps(body(engine.served_name, jpeg(drawn(320, 240))) | ENDLESS).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Length: {len(document)}\r\n"
    address = httpx.URL(site.gateway.url)
    with closing(socket.create_connection((address.host, address.port or 80))) as connection:
        before = engine.generated_tokens()
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + document)
        wait_until(lambda: engine.generated_tokens() > before, STOP_DEADLINE_S, "the engine generates")


def _has_content(line: str) -> bool:
    """Of a stream's events the ones with something that was generated."""
    if not line.startswith("data: {"):
        return False
    return any(choice["delta"].get("content") for choice in json.loads(line.removeprefix("data: "))["choices"])
