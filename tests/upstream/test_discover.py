"""Discovery against real servers: recognised, generic, slow, or not there."""

from __future__ import annotations

import pytest

from gateway.types import EngineKind
from gateway.upstream.discover import Unanswered, discover, fetch, probe_client
from gateway.upstream.settings import BackendSettings
from tests.ports import free_port
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response, routes

VLLM = {
    "/v1/models": b'{"data":[{"id":"m","owned_by":"vllm","root":"/m","max_model_len":8192}]}',
    "/version": b'{"version":"0.32.0"}',
    "/metrics": b'vllm:cache_config_info{block_size="16",kv_cache_size_tokens="100000"} 1.0\n',
}


async def test_an_engine_is_known_by_its_documents() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, probe_client(5.0) as client:
        engine, facts = await discover(client, BackendSettings(server.url, api_key="secret"))
        assert engine.kind is EngineKind.VLLM
        assert (facts.models, facts.context_tokens, facts.kv_capacity_tokens) == (("m",), 8192, 100_000)
        assert all(exchange.headers("authorization") == ["Bearer secret"] for exchange in server.exchanges)


async def test_a_configured_engine_is_asked_its_own_questions_only() -> None:
    async with ScriptedEngine(routes(VLLM)) as server, probe_client(5.0) as client:
        engine, facts = await discover(client, BackendSettings(server.url, engine=EngineKind.GENERIC))
        assert engine.kind is EngineKind.GENERIC
        assert facts.models == ("m",)
        assert server.targets == ["/v1/models"]


async def test_a_server_of_chat_completions_only_is_generic() -> None:
    async with ScriptedEngine(routes({})) as server, probe_client(5.0) as client:
        engine, facts = await discover(client, BackendSettings(server.url))
        assert engine.kind is EngineKind.GENERIC
        assert facts.models == ()


async def test_nobody_there() -> None:
    async with probe_client(5.0) as client:
        with pytest.raises(Unanswered) as caught:
            await discover(client, BackendSettings(f"http://127.0.0.1:{free_port()}"))
        assert caught.value.refused


async def test_slow_and_rude_servers_have_not_refused() -> None:
    async def silent(exchange: Exchange) -> None:
        await exchange.left()
        exchange.writer.close()

    async def rude(exchange: Exchange) -> None:
        exchange.reset()

    for script in (silent, rude, answering(b"SSH-2.0\r\n")):
        async with ScriptedEngine(script) as server, probe_client(0.1) as client:
            with pytest.raises(Unanswered) as caught:
                await fetch(client, BackendSettings(server.url), "/version")
            assert not caught.value.refused


async def test_an_endless_document_is_given_up() -> None:
    async with ScriptedEngine(answering(json_response(bytes(9 << 20)))) as server, probe_client(5.0) as client:
        with pytest.raises(Unanswered, match="does not end"):
            await fetch(client, BackendSettings(server.url), "/metrics")
