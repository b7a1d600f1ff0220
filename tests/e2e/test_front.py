"""HTTP/2 and TLS end to end: a real HTTP/2 client, the shipped front, a gateway, a simulated engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.front import FOLDER, Front
from tests.e2e.h2_client import Http2
from tests.e2e.processes import DEADLINE_S, Engine, Gateway, until
from tests.simulator.process import chat, events

pytestmark = pytest.mark.slow
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class _Site:
    front: Front
    gateway: Gateway
    engine: Engine


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    folder = tmp_path_factory.mktemp("front")
    with (
        Engine() as engine,
        Gateway("--backend", engine.url) as gateway,
        Front(gateway.url.removeprefix("http://"), folder, FRONT_MAX_BODY="21m") as front,
    ):
        yield _Site(front, gateway, engine)


@pytest.fixture
async def client(site: _Site) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=site.front.url, http2=True, verify=site.front.trust, trust_env=False, timeout=DEADLINE_S
    ) as made:
        yield made


async def _port_of(response: httpx.Response) -> int:
    return int(response.extensions["network_stream"].get_extra_info("client_addr")[1])


async def test_many_streams_share_one_connection(client: httpx.AsyncClient) -> None:
    first = await client.post(PATH, json=chat("warm"))
    assert first.http_version == "HTTP/2"
    bodies = [chat(f"number {number}", stream=number % 2 == 0, max_tokens=20) for number in range(60)]
    answers = await asyncio.gather(*(client.post(PATH, json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    assert {await _port_of(answer) for answer in answers} == {await _port_of(first)}
    assert all(events(answer.text)[-1] == "[DONE]" for answer in answers[::2])


async def test_events_arrive_one_by_one(site: _Site, client: httpx.AsyncClient) -> None:
    site.engine.fault("hang_mid_stream", after_events=3)
    async with client.stream("POST", PATH, json=chat("hello", stream=True)) as answer:
        lines = answer.aiter_lines()
        got = [line async for line in _first(lines, 3)]
    assert len(got) == 3, "the engine hangs behind the third event: it came without a fourth to push it"


async def _first(lines: AsyncIterator[str], count: int) -> AsyncIterator[str]:
    async for line in lines:
        if line.startswith("data: "):
            yield line
            count -= 1
            if not count:
                return


def test_a_stream_that_is_cancelled_ends_at_the_engine_and_leaves_the_others(site: _Site) -> None:
    until(lambda: site.engine.state()["in_flight"] == 0, "an idle engine")
    site.engine.fault("hang_mid_stream", after_events=2)
    with Http2(site.front.port, site.front.trust) as wire:
        left = wire.post(PATH, chat("to be left", stream=True))
        wire.until(lambda: wire.bodies[left].count(b"data: ") >= 2)
        kept = wire.post(PATH, chat("to be kept", stream=True, max_tokens=40))
        wire.until(lambda: wire.bodies[kept].count(b"data: ") >= 1)
        wire.reset(left)
        wire.until(lambda: kept in wire.ended)
        # The one that was reset would hang for ever.
        until(lambda: site.engine.state()["in_flight"] == 0, "the end of both at the engine")
    assert wire.statuses == {left: 200, kept: 200}
    assert wire.bodies[kept].endswith(b"data: [DONE]\n\n")


async def test_a_body_of_20_mb_arrives_whole(site: _Site, client: httpx.AsyncClient) -> None:
    site.engine.forget()
    answer = await client.post(PATH, json=chat("hi", padding="a" * 20_000_000, max_tokens=1))
    assert answer.status_code == 200, answer.text[:300]
    line = site.gateway.access_line(answer.headers["x-request-id"])
    assert line["request_bytes"] > 20_000_000
    assert line["forwarded_bytes"] == line["request_bytes"]


def test_too_large_a_body_is_told_in_the_apis_envelope_before_it_is_sent(site: _Site) -> None:
    with Http2(site.front.port, site.front.trust) as wire:
        refused = wire.announce(PATH, 25_000_000)
        wire.until(lambda: refused in wire.ended)
    assert wire.statuses[refused] == 413
    assert json.loads(wire.bodies[refused])["error"]["code"] == "body_too_large"


async def test_errors_of_the_gateway_pass_as_they_are(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "route_not_found"
    assert answer.headers["server"] == "vlm-gateway"


async def test_a_renewed_certificate_is_taken_up_while_a_stream_goes_on(site: _Site, client: httpx.AsyncClient) -> None:
    assert site.front.shown() == "front"
    async with client.stream("POST", PATH, json=chat("long", stream=True, max_tokens=200)) as answer:
        lines = answer.aiter_lines()
        _ = [line async for line in _first(lines, 1)]
        site.front.use("renewed")
        site.front.reload()
        await asyncio.to_thread(until, lambda: _quietly(site.front) == "renewed", "the renewed certificate")
        rest = [line async for line in lines if line]
    assert rest[-1] == "data: [DONE]"


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    papers = {"FRONT_CERTIFICATE": "gone.pem", "FRONT_KEY": "gone.key", "FRONT_STATE": str(tmp_path / "state")}
    ran = subprocess.run(
        [str(FOLDER / "start")], cwd=tmp_path, env={**os.environ, **papers}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (2, f"front: FRONT_CERTIFICATE: {tmp_path}/gone.pem cannot be read\n")


def _quietly(front: Front) -> str:
    with contextlib.suppress(OSError):
        return front.shown()
    return ""
