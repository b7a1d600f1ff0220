"""What requests meet is noted, late news too; a real transport against scripted engines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from gateway.errors import BackendLost, NotTaken
from gateway.types import RequestCost
from gateway.upstream.judge import Judge
from gateway.upstream.membership import silent
from gateway.upstream.outcomes import Outcomes
from gateway.upstream.outliers import OutlierRules
from gateway.upstream.registry import Backend, Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.transport.exchange import Transport
from gateway.upstream.transport.response import EngineResponse
from tests.upstream.scripted import Exchange, Script, ScriptedEngine, answering, json_response
from tests.upstream.transport.wire import post, whole


class HandClock:
    def __init__(self) -> None:
        self.s = 100.0

    def now_s(self) -> float:
        return self.s


class Counting(Judge):
    """The real judge, with what it was told at hand."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, OutlierRules(), silent)
        self.heard: list[str] = []
        self.seconds: list[float] = []

    def answered(self, backend: Backend, now_s: float) -> None:
        self.heard.append("good")
        super().answered(backend, now_s)

    def failed(self, backend: Backend, now_s: float, *, late: bool = False) -> None:
        self.heard.append("late" if late else "bad")
        super().failed(backend, now_s, late=late)

    def took(self, backend: Backend, now_s: float, seconds: float, cost: RequestCost | None, *, streamed: bool) -> None:
        self.seconds.append(seconds)
        super().took(backend, now_s, seconds, cost, streamed=streamed)


@dataclass(slots=True)
class Bench:
    clock: HandClock
    judge: Counting
    outcomes: Outcomes
    backend: Backend
    transport: Transport
    nudged: list[str] = field(default_factory=list)

    async def send(self) -> EngineResponse:
        sent_s = self.outcomes.sent(self.backend)
        try:
            response = await self.transport.forward(self.backend, post(b"{}"))
        except Exception as failure:
            self.outcomes.failed(self.backend, failure)
            raise
        self.outcomes.answered(self.backend, response, sent_s, RequestCost(10, 10, 0))
        return response


@asynccontextmanager
async def bench(script: Script) -> AsyncIterator[Bench]:
    async with ScriptedEngine(script) as engine:
        settings = UpstreamSettings((BackendSettings(engine.url, name="a", engine="vllm"),), breaker_failures=1)  # type: ignore[arg-type]
        registry = Registry(settings)
        backend = next(iter(registry))
        clock, judge, nudged = HandClock(), Counting(registry), list[str]()
        outcomes = Outcomes(
            clock,
            judge,
            30.0,
            lambda each: nudged.append(each.name),
            lambda each: nudged.append(f"{each.name} returned"),
        )
        transport = Transport(settings)
        await transport.open()
        yield Bench(clock, judge, outcomes, backend, transport, nudged)
        await transport.close()


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_an_answer_closes_the_breaker_and_marks_up() -> None:
    async with bench(answering(json_response(b"{}"))) as b:
        b.backend.standing.breaker.failed(b.clock.s)
        b.backend.mark_down()
        await whole(await b.send())
        assert b.backend.standing.breaker.is_closed
        assert (b.backend.up, b.nudged, b.judge.heard) == (True, ["a returned"], ["good"])


async def test_half_open_others_wait_for_the_trial() -> None:
    async with bench(answering(json_response(b"{}"))) as b:
        b.backend.standing.breaker.failed(b.clock.s)
        b.clock.s += 2.0
        assert b.backend.view(b.clock.s).healthy
        b.outcomes.sent(b.backend)
        assert not b.backend.view(b.clock.s).healthy


async def test_a_stream_lost_half_way_counts() -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(STREAM + b"9\r\ndata: a\n\n\r\n")
        exchange.writer.close()

    async with bench(half) as b:
        response = await b.send()
        b.clock.s += 3.0
        with pytest.raises(BackendLost):
            await whole(response)
        response.close()
        assert (b.judge.heard, b.judge.seconds, b.nudged) == (["good", "late"], [3.0], ["a"])
        assert not b.backend.standing.breaker.allows(b.clock.s)


@pytest.mark.parametrize(
    ("status", "body", "heard"),
    [
        ("500 Error", b"a picture too large", ["good"]),
        ("500 Error", b"EngineCore encountered an issue", ["bad"]),
        ("400 Bad Request", b"no", ["good"]),
    ],
)
async def test_who_is_to_blame_for_an_error(status: str, body: bytes, heard: list[str]) -> None:
    async with bench(answering(json_response(body, status))) as b:
        assert await whole(await b.send()) == body
        assert b.judge.heard == heard
        assert b.backend.standing.breaker.is_closed


async def test_retry_after_is_a_rest() -> None:
    async with bench(answering(json_response(b"busy", "429 Too Many", "Retry-After: 5\r\n"))) as b:
        await whole(await b.send())
        assert b.backend.view(b.clock.s + 4.9).resting
        b.backend.refresh()
        assert not b.backend.view(b.clock.s + 5.0).resting


async def test_a_refusal_is_an_answer_and_may_ask_for_rest() -> None:
    body = b"The engine is currently busy and cannot accept new requests"
    async with bench(answering(json_response(body, "503 Busy", "Retry-After: 1\r\n"))) as b:
        b.backend.mark_down()
        with pytest.raises(NotTaken) as caught:
            await b.send()
        assert isinstance(caught.value.response, EngineResponse)
        caught.value.response.close()
        assert (b.backend.up, b.judge.heard) == (True, [])
        assert b.backend.view(b.clock.s).resting


async def test_a_connection_refused_takes_it_down() -> None:
    async with bench(answering(json_response(b"{}"))) as b:
        b.outcomes.failed(b.backend, NotTaken("connect"))
        assert (b.backend.up, b.judge.heard, b.nudged) == (False, ["bad"], ["a"])
