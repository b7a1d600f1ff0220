"""Backends that come, go and come back while requests are on them; real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.errors import NotTaken
from gateway.ports import UpstreamRequest
from gateway.routing.holding import RouteKey
from gateway.types import BackendName, RequestCost
from gateway.upstream.service import UpstreamService
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from tests.upstream.scripted import Exchange, Script, ScriptedEngine, SteadyClock, json_response, routes, until

DOCUMENTS = {"/health": b"", "/v1/models": b'{"data":[{"id":"m","owned_by":"vllm"}]}', "/version": b'{"version":"1"}'}
REQUEST = UpstreamRequest("POST", "/v1/chat/completions", "", (), (b"{}",), 2)
COST = RequestCost(10, 5, 0)


def engine() -> Script:
    async def serve(exchange: Exchange) -> None:
        if exchange.target != REQUEST.path:
            await routes(DOCUMENTS)(exchange)
            return
        await exchange.read_body()
        await exchange.send(json_response(b"{}"))

    return serve


@asynccontextmanager
async def started(*backends: BackendSettings) -> AsyncIterator[UpstreamService]:
    service = UpstreamService(UpstreamSettings(backends, revival_interval_s=0.01), SteadyClock())
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def shown(service: UpstreamService) -> list[tuple[str, bool]]:
    return [(view.name, view.healthy) for view in service.views()]


async def test_a_newcomer_takes_requests_once_it_has_said_what_it_is() -> None:
    async with ScriptedEngine(engine()) as here, started(BackendSettings(here.url, "a")) as service:
        release = asyncio.Event()

        async def slow(exchange: Exchange) -> None:
            await release.wait()
            await routes(DOCUMENTS)(exchange)

        async with ScriptedEngine(slow) as there:
            service._fleet.take([BackendSettings(here.url, "a"), BackendSettings(there.url, "b")])
            assert shown(service) == [("a", True), ("b", False)]
            release.set()
            await until(lambda: shown(service) == [("a", True), ("b", True)])
            assert service.views()[1].models == ("m",)
            assert (service.fleet().joined, service.fleet().left) == (1, 0)


async def test_one_that_left_finishes_its_requests_and_is_forgotten() -> None:
    async with ScriptedEngine(engine()) as here, started(BackendSettings(here.url, "a")) as service:
        account = service.open_account(BackendName("a"), COST)
        key = RouteKey(images=(b"image",))
        service._beliefs.learn(BackendName("a"), key)
        service._fleet.take([])
        assert list(service.views()) == []
        (leaving,) = service.everybody()
        assert (leaving.name, leaving.draining, leaving.inflight_requests) == ("a", True, 1)
        response = await service.forward(BackendName("a"), REQUEST)
        assert response.status == 200
        response.close()
        account.close()
        assert list(service.everybody()) == []
        assert service._beliefs.holdings(key) == {}
        with pytest.raises(NotTaken, match="has left"):
            await service.forward(BackendName("a"), REQUEST)


async def test_one_that_comes_back_while_its_requests_run_is_the_same() -> None:
    async with ScriptedEngine(engine()) as here, started(BackendSettings(here.url, "a")) as service:
        account = service.open_account(BackendName("a"), COST)
        service._fleet.take([])
        service._fleet.take([BackendSettings(here.url, "a")])
        await until(lambda: shown(service) == [("a", True)])
        assert service.views()[0].inflight_requests == 1
        account.close()
        assert service.views()[0].inflight_requests == 0
        assert shown(service) == [("a", True)], "the end of an old request removes nobody who is back"


async def test_another_address_under_the_same_name_is_another_engine() -> None:
    async with (
        ScriptedEngine(engine()) as old,
        ScriptedEngine(engine()) as new,
        started(BackendSettings(old.url, "a")) as service,
    ):
        account = service.open_account(BackendName("a"), COST)
        service._fleet.take([BackendSettings(new.url, "a")])
        await until(lambda: shown(service) == [("a", True)])
        (view,) = service.views()
        assert (view.url, view.inflight_requests) == (new.url, 0)
        account.close()
        assert shown(service) == [("a", True)]


async def test_other_settings_of_the_same_engine_are_taken_over_in_place() -> None:
    async with ScriptedEngine(engine()) as here, started(BackendSettings(here.url, "a")) as service:
        await until(lambda: service.views()[0].models == ("m",))
        service._fleet.take([BackendSettings(here.url, "a", max_pixels=1000)])
        (view,) = service.views()
        assert (view.healthy, view.models, view.max_pixels) == (True, ("m",), 1000)
        assert (service.fleet().joined, service.fleet().left) == (0, 0)


async def test_nothing_changes_when_one_cannot_be_used() -> None:
    async with ScriptedEngine(engine()) as here, started(BackendSettings(here.url, "a")) as service:
        with pytest.raises(ValueError, match=r"backend b: .*missing"):
            service._fleet.take([BackendSettings("https://b", "b", tls_ca_file="missing.pem")])
        assert shown(service) == [("a", True)]


async def test_stopping_ends_every_task() -> None:
    async with ScriptedEngine(engine()) as here:
        async with started(BackendSettings(here.url, "a")) as service:
            service._fleet.take([BackendSettings(here.url, "b")])
            service._fleet.take([])
        others = [task for task in asyncio.all_tasks() if "watch" in task.get_name()]
        assert others == []


async def test_newcomers_are_not_all_asked_at_once() -> None:
    asking, most = 0, 0
    release = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await release.wait()
        asking -= 1
        await routes(DOCUMENTS)(exchange)

    async with ScriptedEngine(slow) as engines, started() as service:
        service._fleet.take([BackendSettings(f"{engines.url}/{number}", f"{number}") for number in range(150)])
        await until(lambda: asking == 64)
        release.set()
        await until(lambda: len(engines.targets) >= 150)
        assert most == 64
