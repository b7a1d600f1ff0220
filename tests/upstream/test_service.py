"""The whole upstream side: from start to stop, learning from every outcome."""

from __future__ import annotations

import json
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.errors import BackendLost, NotTaken
from gateway.ports import Upstream, UpstreamRequest
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import TokenPrompt
from gateway.routing.holding import Holding, RouteKey
from gateway.types import BackendName, EngineKind, RequestCost
from gateway.upstream.kv_events.settings import KvEventsSettings
from gateway.upstream.service import UpstreamService
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from tests.ports import free_port
from tests.upstream.kv_events.publisher import Publisher, stored
from tests.upstream.scripted import (
    Exchange,
    Script,
    ScriptedEngine,
    SteadyClock,
    answering,
    json_response,
    routes,
    until,
)

A = BackendName("a")
DOCUMENTS = {"/health": b"", "/v1/models": b'{"data":[{"id":"m","owned_by":"vllm"}]}', "/version": b'{"version":"1"}'}
REQUEST = UpstreamRequest("POST", "/v1/chat/completions", "", (), (b"{}",), 2)


def chat(script: Script) -> Script:
    """A vLLM that answers probes properly and chat as scripted."""

    async def serve(exchange: Exchange) -> None:
        await (script if exchange.target == REQUEST.path else routes(DOCUMENTS))(exchange)

    return serve


@asynccontextmanager
async def started(*urls: str, probe_interval_s: float = 3600.0) -> AsyncIterator[UpstreamService]:
    backends = tuple(BackendSettings(url, name=name) for url, name in zip(urls, "abc", strict=False))
    settings = UpstreamSettings(backends, probe_interval_s=probe_interval_s, revival_interval_s=0.01)
    service = UpstreamService(settings, SteadyClock())
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def send(service: UpstreamService) -> int:
    response = await service.forward(A, REQUEST)
    while await response.chunk():
        pass
    response.close()
    return response.status


async def test_it_is_the_journeys_port() -> None:
    port: Upstream = UpstreamService(UpstreamSettings(()), SteadyClock())
    assert port.views() == ()


async def test_start_knows_the_engines() -> None:
    async with ScriptedEngine(chat(answering(json_response(b"{}")))) as engine, started(engine.url) as service:
        (view,) = service.views()
        assert (view.engine, view.engine_version, view.models, view.url) == (EngineKind.VLLM, "1", ("m",), engine.url)
        assert await send(service) == 200


async def test_start_does_not_wait_for_the_silent() -> None:
    async def silent(exchange: Exchange) -> None:
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(silent) as engine:
        settings = UpstreamSettings((BackendSettings(engine.url, name="a"),), discovery_timeout_s=0.05)
        service = UpstreamService(settings, SteadyClock())
        await service.start()
        (view,) = service.views()
        assert (view.healthy, view.engine) == (True, EngineKind.GENERIC)
        await service.stop()


async def test_a_refused_connection_marks_down_at_once_and_the_return_is_noticed() -> None:
    port = free_port()
    answer = chat(answering(json_response(b"{}")))
    async with started(f"http://127.0.0.1:{port}") as service:
        service.learn(A, RouteKey((b"1", b"2")))
        assert service.holdings(RouteKey((b"1", b"3")))[A].images == 1
        with pytest.raises(NotTaken):
            await send(service)
        assert not service.views()[0].healthy
        async with ScriptedEngine(answer, port=port):
            await until(lambda: service.views()[0].healthy)
            assert service.holdings(RouteKey((b"1",))) == {}
            assert await send(service) == 200


async def test_an_answer_outranks_a_mark() -> None:
    port = free_port()
    async with started(f"http://127.0.0.1:{port}") as service:
        await until(lambda: not service.views()[0].healthy)
        async with ScriptedEngine(chat(answering(json_response(b"{}"))), port=port):
            assert await send(service) == 200
            assert service.views()[0].healthy


async def test_a_draining_backend_is_shown_as_such() -> None:
    drains = json_response(b'{"error":{"message":"cannot schedule new futures after shutdown"}}', "500 Error")
    async with ScriptedEngine(chat(answering(drains))) as engine, started(engine.url) as service:
        with pytest.raises(NotTaken) as caught:
            await send(service)
        assert caught.value.reason == "draining"
        (view,) = service.views()
        assert (view.healthy, view.draining) == (True, True)


async def test_lost_connections_open_the_breaker() -> None:
    async def vanish(exchange: Exchange) -> None:
        await exchange.read_body()
        exchange.reset()

    async with ScriptedEngine(chat(vanish)) as engine, started(engine.url) as service:
        for _ in range(5):
            assert service.views()[0].healthy
            with pytest.raises(BackendLost):
                await send(service)
        assert not service.views()[0].healthy
        engine.script = chat(answering(json_response(b"{}")))
        assert await send(service) == 200
        assert service.views()[0].healthy


async def test_accounts_show_in_views() -> None:
    async with ScriptedEngine(chat(answering(json_response(b"{}")))) as engine, started(engine.url) as service:
        account = service.open_account(A, RequestCost(10, 5, 3))
        assert service.views()[0].inflight_kv_tokens == 15
        account.close()
        assert service.views()[0].inflight_requests == 0


async def test_resends_are_rationed() -> None:
    service = UpstreamService(UpstreamSettings((), retry_floor_per_s=0.0), SteadyClock())
    assert [service.may_retry() for _ in range(11)] == [True] * 10 + [False]


async def test_publishers_are_followed_and_asked_what_they_hold() -> None:
    with Publisher() as publisher:
        publisher.publish(stored([1] * 9))
        listening = {"0": {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://127.0.0.1:9"}}
        announced = {"0": listening["0"] | {"endpoint": publisher.endpoint.replace("127.0.0.1", "*"), "topic": "kv"}}
        announced["0"]["replay_endpoint"] = publisher.replay_endpoint.replace("127.0.0.1", "*")
        scripts = [
            routes(DOCUMENTS | {"/kv_event_sources": json.dumps(each).encode()}) for each in (announced, listening)
        ]
        async with ScriptedEngine(scripts[0]) as a, ScriptedEngine(scripts[1]) as b:
            backends = (BackendSettings(a.url, name="a"), BackendSettings(b.url, name="b"))
            service = UpstreamService(UpstreamSettings(backends, KvEventsSettings()), SteadyClock())
            await service.start()
            try:
                key = RouteKey(prompt=PromptChains(TokenPrompt(array("Q", [1] * 9))))
                await until(lambda: A in service.holdings(key))
                assert service.holdings(key) == {A: Holding(prefix_tokens=8, exact=True)}
                await service.look_ahead(key)
                assert service.kv_events is not None
                assert [facts.backend for facts in service.kv_events.facts()] == [A]
            finally:
                await service.stop()


async def test_an_engine_is_asked_to_report_its_load_and_nobody_else_hears_of_it() -> None:
    report = 'JSON {"named_metrics": {"num_requests_waiting": 3.0, "kv_cache_usage_perc": 0.5}}'
    told = json_response(b"{}", extra=f"endpoint-load-metrics: {report}\r\n")
    async with ScriptedEngine(chat(answering(told))) as engine, started(engine.url) as service:
        await until(lambda: service.views()[0].engine is EngineKind.VLLM)
        response = await service.forward(A, REQUEST)
        assert "endpoint-load-metrics" not in {name.lower() for name, _ in response.headers}
        response.close()
        (view,) = service.views()
        assert (view.engine_waiting, view.kv_use_ratio) == (3, 0.5)
        await send(service)
        asked = [
            each.headers("endpoint-load-metrics-format") for each in engine.exchanges if each.target == REQUEST.path
        ]
        assert asked == [["json"], []], "not with every request: a report costs the engine milliseconds"


async def test_other_engines_are_not_asked_for_load() -> None:
    documents = {"/v1/models": b'{"data":[{"id":"m"}]}'}

    async def generic(exchange: Exchange) -> None:
        is_chat = exchange.target == REQUEST.path
        await (answering(json_response(b"{}")) if is_chat else routes(documents))(exchange)

    async with ScriptedEngine(generic) as engine, started(engine.url) as service:
        await until(lambda: service.views()[0].models == ("m",))
        await send(service)
        assert engine.exchanges[-1].headers("endpoint-load-metrics-format") == []


async def test_what_replicas_tell_counts_for_backends_that_are_known_here() -> None:
    key = RouteKey((b"i" * 16,), (400,), (100,))
    async with ScriptedEngine(routes(DOCUMENTS)) as engine, started(engine.url) as service:
        await until(lambda: service.views()[0].healthy)
        service.hear("nobody here", 0, [(key.images[0], 100)])
        assert service.holdings(key) == {}
        service.hear(A, 0, [(key.images[0], 100)])
        assert service.holdings(key)[A].images == 1
