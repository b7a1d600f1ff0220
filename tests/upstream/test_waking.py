"""The costly probe: asked where an engine has one, and never where it has none."""

from __future__ import annotations

import asyncio

from gateway.types import EngineKind
from gateway.upstream.discover import probe_client
from gateway.upstream.registry import Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.waking import keep_awake
from tests.upstream.scripted import ScriptedEngine, routes, until


async def test_sglang_is_made_to_look_at_itself_and_others_are_not() -> None:
    health = routes({"/health": b""})
    async with ScriptedEngine(health) as sglang, ScriptedEngine(health) as vllm, probe_client(5.0) as client:
        backends = (
            BackendSettings(vllm.url, "vllm", engine=EngineKind.VLLM),
            BackendSettings(sglang.url, "sglang", engine=EngineKind.SGLANG),
        )
        tasks = [
            asyncio.create_task(keep_awake(backend, client, 0.001)) for backend in Registry(UpstreamSettings(backends))
        ]
        await until(lambda: sglang.targets[:3] == ["/health"] * 3)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert vllm.targets == []
