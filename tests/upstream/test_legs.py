"""Legs on real sockets: several at once, a pair that depends on each other, and everything ended by whoever leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from gateway.handoff import Encoding
from gateway.legwork import HelperFailed, LegEnd, Legs
from gateway.ports import UpstreamRequest
from gateway.types import BackendName, BackendRole
from gateway.upstream.legs import LegService, legs_of
from gateway.upstream.service import UpstreamService
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from tests.ports import free_port
from tests.upstream.scripted import (
    Exchange,
    Script,
    ScriptedEngine,
    SteadyClock,
    answering,
    json_response,
    until,
)

HELPER, BACKEND = BackendName("helper"), BackendName("backend")
REQUEST = UpstreamRequest("POST", "/v1/chat/completions", "", (), (b"{}",), 2)
BUSY = b"The engine is currently busy and cannot accept new requests"


def settings(helper: str, backend: str, timeout_s: float = 5.0) -> UpstreamSettings:
    backends = (
        BackendSettings(helper, name="helper", engine="vllm", role=BackendRole.PREFILL),  # type: ignore[arg-type]
        BackendSettings(backend, name="backend", engine="vllm", role=BackendRole.DECODE),  # type: ignore[arg-type]
    )
    return UpstreamSettings(
        backends, discovery_timeout_s=0.01, probe_interval_s=3600.0, leg_timeout_s=timeout_s, encodings_kept_s=60.0
    )


def chat_only(script: Script) -> Script:
    async def serve(exchange: Exchange) -> None:
        await (script if exchange.target == REQUEST.path else answering(json_response(b"{}")))(exchange)

    return serve


@asynccontextmanager
async def started(helper: Script, backend: Script, timeout_s: float = 5.0) -> AsyncIterator[LegService]:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(ScriptedEngine(chat_only(each))) for each in (helper, backend)]
        chosen = settings(engines[0].url, engines[1].url, timeout_s)
        service = UpstreamService(chosen, SteadyClock())
        await service.start()
        stack.push_async_callback(service.stop)
        legs = legs_of(service, chosen, SteadyClock())
        assert legs is not None
        yield legs


class Silent:
    """Takes requests and says nothing; knows who came and who left."""

    def __init__(self) -> None:
        self.came = self.gone = 0

    async def __call__(self, exchange: Exchange) -> None:
        self.came += 1
        await exchange.left()
        self.gone += 1
        exchange.writer.close()


def test_without_roles_there_are_no_legs() -> None:
    plain = UpstreamSettings((BackendSettings("http://a"),))
    assert legs_of(UpstreamService(plain, SteadyClock()), plain, SteadyClock()) is None


async def test_each_leg_has_its_end() -> None:
    ok, busy = answering(json_response(b'{"a":1}')), answering(json_response(BUSY, "503 Service Unavailable"))
    async with started(ok, busy) as legs:
        port: Legs = legs
        answers = await port.ask_each([(HELPER, REQUEST), (BACKEND, REQUEST), (HELPER, REQUEST)])
        assert [answer.end for answer in answers] == [LegEnd.DONE, LegEnd.REFUSED, LegEnd.DONE]
        assert answers[0].body == b'{"a":1}'
        assert 0 <= port.new_room() < 2**63


async def test_what_is_no_200_or_takes_too_long_has_failed() -> None:
    silent = Silent()
    async with started(answering(json_response(b"{}", "400 Bad Request")), silent, timeout_s=0.3) as legs:
        answers = await legs.ask_each([(HELPER, REQUEST), (BACKEND, REQUEST)])
        assert [answer.end for answer in answers] == [LegEnd.FAILED, LegEnd.FAILED]
        await until(lambda: silent.gone == silent.came)


async def test_who_leaves_ends_every_leg() -> None:
    silent = Silent()
    async with started(silent, silent) as legs:
        task = asyncio.create_task(legs.ask_each([(HELPER, REQUEST), (BACKEND, REQUEST)]))
        await until(lambda: silent.came == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: silent.gone == 2)


async def test_helpers_are_those_that_are_up() -> None:
    closed = f"http://127.0.0.1:{free_port()}"
    chosen = settings(closed, closed)
    service = UpstreamService(chosen, SteadyClock())
    legs = LegService(service, chosen, SteadyClock())
    assert [view.name for view in legs.helpers(BackendRole.PREFILL)] == [HELPER]
    assert legs.helpers(BackendRole.ENCODER) == []
    await service.start()
    await until(lambda: not legs.helpers(BackendRole.PREFILL))
    await service.stop()


async def test_a_helper_that_came_back_is_not_believed_to_hold_what_it_wrote() -> None:
    """A consumer that is told of an encoding nobody wrote ends its engine, so nobody need have looked in between."""
    chosen = settings("http://127.0.0.1:9", "http://127.0.0.1:9")
    service = UpstreamService(chosen, SteadyClock())
    legs = LegService(service, chosen, SteadyClock())
    helper = next(backend for backend in service._registry if backend.name == HELPER)

    def keep() -> None:
        (view,) = legs.helpers(BackendRole.PREFILL)
        legs.keep(Encoding("k", {"metadata": {"a": 1}}), view)

    keep()
    assert legs.is_written("k")
    helper.mark_down()
    assert not legs.is_written("k"), "what it wrote may be gone with it"
    helper.mark_up(0.0)
    assert not legs.is_written("k")
    assert legs.recall("k") is not None
    keep()
    assert legs.is_written("k")


async def test_another_helper_under_the_same_name_has_written_nothing() -> None:
    chosen = settings("http://127.0.0.1:9", "http://127.0.0.1:9")
    service = UpstreamService(chosen, SteadyClock())
    legs = LegService(service, chosen, SteadyClock())
    (view,) = legs.helpers(BackendRole.PREFILL)
    legs.keep(Encoding("k", {"metadata": {"a": 1}}), view)
    service._registry.leave(HELPER)
    assert not legs.is_written("k")
    service._registry.join(replace(chosen.backends[0], url="http://127.0.0.1:10"))
    assert not legs.is_written("k")


async def test_a_pair_answers_with_the_second_and_closing_it_ends_both() -> None:
    silent = Silent()
    async with started(silent, answering(json_response(b"second"))) as legs:
        response = await legs.forward_beside(HELPER, REQUEST, BACKEND, REQUEST)
        assert (response.status, response.content_length) == (200, 6)
        assert await response.chunk() == b"second"
        assert response.headers
        response.close()
        await until(lambda: silent.gone == silent.came)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (json_response(b"{}", "500 Internal Server Error"), LegEnd.FAILED),
        (json_response(BUSY, "503 Service Unavailable"), LegEnd.REFUSED),
    ],
)
async def test_a_first_leg_that_fails_takes_the_second_back(answer: bytes, end: LegEnd) -> None:
    silent = Silent()
    async with started(answering(answer), silent) as legs:
        with pytest.raises(HelperFailed) as failure:
            await legs.forward_beside(HELPER, REQUEST, BACKEND, REQUEST)
        assert failure.value.end is end
        await until(lambda: silent.gone == silent.came)


async def test_who_leaves_a_pair_ends_both() -> None:
    silent = Silent()
    async with started(silent, silent) as legs:
        task = asyncio.create_task(legs.forward_beside(HELPER, REQUEST, BACKEND, REQUEST))
        await until(lambda: silent.came == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: silent.gone == 2)
