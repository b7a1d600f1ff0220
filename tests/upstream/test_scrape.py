"""Load reports: the first one the engine offers."""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.discover import probe_client
from gateway.upstream.engines import engine_of
from gateway.upstream.engines.contract import EngineLoad
from gateway.upstream.scrape import scrape
from gateway.upstream.settings import BackendSettings
from tests.upstream.scripted import ScriptedEngine, routes


async def test_the_next_report_is_asked_when_the_first_is_missing() -> None:
    metrics = {"/metrics": b"sglang:num_running_reqs 4\n"}
    async with ScriptedEngine(routes(metrics)) as server, probe_client(5.0) as client:
        load = await scrape(client, BackendSettings(server.url), engine_of(EngineKind.SGLANG))
        assert load == EngineLoad(running=4)
        assert server.targets == ["/v1/loads?include=core", "/metrics"]


async def test_an_engine_without_reports_has_no_load() -> None:
    async with ScriptedEngine(routes({})) as server, probe_client(5.0) as client:
        assert await scrape(client, BackendSettings(server.url), engine_of(EngineKind.VLLM)) is None
        assert await scrape(client, BackendSettings(server.url), engine_of(EngineKind.GENERIC)) is None
