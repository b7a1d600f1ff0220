"""Watching one backend: down, up again, restarted, busy, odd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.types import BackendName, EngineKind
from gateway.upstream.discover import probe_client
from gateway.upstream.engines import engine_of
from gateway.upstream.health import Watcher, alive
from gateway.upstream.registry import Backend, Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from tests.ports import free_port
from tests.upstream.scripted import ScriptedEngine, SteadyClock, answering, json_response, routes, until

VLLM = {
    "/health": b"",
    "/v1/models": b'{"data":[{"id":"m","owned_by":"vllm"}]}',
    "/version": b'{"version":"1"}',
    "/metrics": b"vllm:num_requests_running 3\n",
}
BROKEN = answering(json_response(b"", "503 Service Unavailable"))


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[tuple[Watcher, Backend, list[BackendName]]]:
    settings = UpstreamSettings((BackendSettings(url, name="a"),), probe_interval_s=0.02, revival_interval_s=0.01)
    backend = next(iter(Registry(settings)))
    restarts: list[BackendName] = []
    async with probe_client(5.0) as client:
        yield Watcher(backend, client, settings, SteadyClock(), restarts.append), backend, restarts


@pytest.mark.parametrize(
    ("documents", "kind", "asked"),
    [
        ({"/health": b""}, EngineKind.VLLM, ["/health"]),
        ({"/ready": b""}, EngineKind.SGLANG, ["/ready"]),
        ({"/v1/models": b""}, EngineKind.SGLANG, ["/ready", "/ping", "/v1/models"]),
        ({}, EngineKind.GENERIC, ["/health", "/v1/models"]),
    ],
)
async def test_the_first_probe_that_exists_decides(
    documents: dict[str, bytes], kind: EngineKind, asked: list[str]
) -> None:
    async with ScriptedEngine(routes(documents)) as server, probe_client(5.0) as client:
        assert await alive(client, BackendSettings(server.url), engine_of(kind))
        assert server.targets == asked


async def test_a_failing_probe_is_believed_the_second_time() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, watched(server.url) as (watcher, backend, restarts):
        await watcher.look()
        assert (backend.discovered, backend.up, backend.engine.kind) == (True, True, EngineKind.VLLM)
        seen = []
        for script in (BROKEN, BROKEN, routes(VLLM)):
            server.script = script
            await watcher.look()
            seen.append(backend.up)
        assert seen == [True, False, True]
        assert restarts == ["a"]


async def test_coming_back_means_asking_anew() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, watched(server.url) as (watcher, backend, _):
        await watcher.look()
        backend.mark_down()
        server.script = routes({**VLLM, "/v1/models": b'{"data":[{"id":"n","owned_by":"vllm"}]}'})
        await watcher.look()
        assert backend.view(0.0).models == ("n",)


async def test_a_restart_seen_by_a_request_is_asked_about_too() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, watched(server.url) as (watcher, backend, _):
        await watcher.look()
        server.script = routes({**VLLM, "/v1/models": b'{"data":[{"id":"n","owned_by":"vllm"}]}'})
        await watcher.look()
        assert backend.view(0.0).models == ("m",), "not due yet"
        watcher.nudge(restarted=True)
        await watcher.look()
        assert backend.view(0.0).models == ("n",)


async def test_load_is_learnt_while_up() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, watched(server.url) as (watcher, backend, _):
        await watcher.look()
        assert backend.view(0.0).engine_running == 3


async def test_a_backend_that_returns_is_found_and_one_that_leaves_is_missed() -> None:
    port = free_port()
    async with watched(f"http://127.0.0.1:{port}") as (watcher, backend, restarts):
        watching = asyncio.create_task(watcher.run(after=asyncio.create_task(watcher.look())))
        await until(lambda: not backend.up)
        async with ScriptedEngine(routes(VLLM), port=port):
            await until(lambda: backend.up)
            assert backend.engine.kind is EngineKind.VLLM
            assert restarts == ["a"]
        await until(lambda: not backend.up)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching


async def test_a_nudge_shortens_the_wait() -> None:
    async with ScriptedEngine(routes(VLLM)) as server:
        settings = UpstreamSettings((BackendSettings(server.url),), probe_interval_s=3600, revival_interval_s=0.01)
        backend = next(iter(Registry(settings)))
        async with probe_client(5.0) as client:
            watcher = Watcher(backend, client, settings, SteadyClock(), lambda _name: None)
            watching = asyncio.create_task(watcher.run(after=asyncio.create_task(watcher.look())))
            await until(lambda: "/metrics" in server.targets)
            before = len(server.targets)
            watcher.nudge()
            await until(lambda: len(server.targets) > before + 1)
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching


async def test_a_large_fleet_is_looked_at_less_often() -> None:
    """A thousand that are down, each asked twice a second, would leave requests no time of the loop."""
    settings = UpstreamSettings((BackendSettings("http://127.0.0.1:9"),), revival_interval_s=0.01)
    backend = next(iter(Registry(settings)))
    backend.mark_down()
    async with probe_client(5.0) as client:
        crowd = 1
        watcher = Watcher(backend, client, settings, SteadyClock(), lambda _name: None, lambda: crowd)
        await asyncio.wait_for(watcher._rest(), 30.0)
        crowd = 1000
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watcher._rest(), 0.2)


async def test_a_large_fleet_that_is_well_is_left_alone_even_longer() -> None:
    settings = UpstreamSettings((BackendSettings("http://127.0.0.1:9"),), probe_interval_s=0.01)
    backend = next(iter(Registry(settings)))
    backend.mark_up(0.0)
    async with probe_client(5.0) as client:
        crowd = 1
        watcher = Watcher(backend, client, settings, SteadyClock(), lambda _name: None, lambda: crowd)
        await asyncio.wait_for(watcher._rest(), 30.0)
        crowd = 25 * 60  # each once a minute
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watcher._rest(), 0.2)


@pytest.mark.parametrize("ticks", range(5))
async def test_a_nudge_does_not_swallow_the_end(ticks: int) -> None:
    async with ScriptedEngine(routes(VLLM)) as server, watched(server.url) as (watcher, _, _):
        watching = asyncio.create_task(watcher.run(after=asyncio.create_task(asyncio.sleep(0))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        watcher.nudge()
        for _ in range(ticks):
            await asyncio.sleep(0)
        watching.cancel()
        await until(watching.done)
