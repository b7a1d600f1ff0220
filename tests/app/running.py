"""A real gateway in this process, in front of a scripted engine on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from gateway.app import Gateway
from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from tests.upstream.scripted import Exchange, Script, ScriptedEngine, answering, json_response, routes

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
DEADLINE_S = 30.0
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
COMPLETION = json.dumps({"choices": [{"message": {"content": "Hi."}}], "usage": USAGE}).encode()
DOCUMENTS = {
    "/health": b"",
    "/version": b'{"version":"0.32.0"}',
    "/v1/models": json.dumps({"data": [{"id": MODEL, "owned_by": "vllm", "max_model_len": 32768}]}).encode(),
}


def engine(chat: Script) -> Script:
    """A vLLM that answers probes and speaks chat as scripted."""

    async def serve(exchange: Exchange) -> None:
        await (chat if exchange.target.startswith("/v1/chat/") else routes(DOCUMENTS))(exchange)

    return serve


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait for what must come to pass."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.005)


@dataclass(slots=True)
class Running:
    """The gateway, its engine, and clients of both ports. ``drained`` is what ``run_until_drained`` returned."""

    gateway: Gateway
    engine: ScriptedEngine
    data: httpx.AsyncClient
    admin: httpx.AsyncClient
    data_port: int
    life: asyncio.Task[bool]

    async def chat(self, **fields: Any) -> httpx.Response:
        return await self.data.post("/v1/chat/completions", json=chat_body(**fields))

    async def metric(self, name: str, **labels: str) -> float:
        """The value of one series, 0 when it is not there."""
        for family in text_string_to_metric_families((await self.admin.get("/metrics")).text):
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return float(sample.value)
        return 0.0


def chat_body(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], **fields}


def settings_for(url: str, **flags: object) -> Settings:
    given: dict[str, object] = {
        "upstream.discovery_timeout_s": 20,
        "server.port": 0, "server.admin_port": 0, "server.settle_s": 0, "server.drain_timeout_s": 10,
        "media.workers": 1, "media.slab_bytes": 64 << 20, "backends": [{"url": url, "name": "engine"}],
    }  # fmt: skip
    return load_settings(environment={}, flags=given | flags)


@asynccontextmanager
async def running(chat: Script | None = None, **flags: object) -> AsyncIterator[Running]:
    """Start everything, stop everything."""
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(ScriptedEngine(engine(chat or answering(json_response(COMPLETION)))))
        gateway = Gateway(settings_for(behind.url, **flags))
        listening = await gateway.start()
        life = asyncio.create_task(gateway.run_until_drained())
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE_S)
            )
            for port in (listening.data, listening.admin)
        ]
        try:
            yield Running(gateway, behind, clients[0], clients[1], listening.data, life)
        finally:
            if not life.done():
                gateway.ask_drain()
                gateway.ask_drain()
            await life
