from __future__ import annotations

import httpx
import pytest

from gateway.simulator.settings import EngineKind
from gateway.simulator.sglang_routes import ADMIN_POSTS
from tests.simulator.conftest import Starter
from tests.simulator.process import MODEL, chat


@pytest.mark.parametrize("path", ["/model_info", "/get_model_info"])
def test_model_info(sglang_http: httpx.Client, path: str) -> None:
    info = sglang_http.get(path).json()
    assert (info["model_path"], info["has_image_understanding"], info["model_type"]) == (MODEL, True, "qwen3_vl")


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info"])
def test_server_info_has_the_budget(sglang_http: httpx.Client, path: str) -> None:
    info = sglang_http.get(path).json()
    assert (info["max_total_num_tokens"], info["page_size"], info["context_length"]) == (262_144, 16, 32_768)
    assert info["version"] == "0.5.23"


def test_loads_and_models(sglang_http: httpx.Client) -> None:
    load = sglang_http.get("/v1/loads?include=core").json()["loads"][0]
    assert (load["num_running_reqs"], load["num_waiting_uncached_tokens"]) == (0, 0)
    assert load["max_total_num_tokens"] == 262_144
    assert sglang_http.get("/v1/models").json()["data"][0]["owned_by"] == "sglang"


def test_metrics_are_sglangs(sglang_http: httpx.Client) -> None:
    sglang_http.post("/v1/chat/completions", json=chat("Hi"))
    page = sglang_http.get("/metrics").text
    assert "sglang:num_running_reqs{" in page
    assert "vllm:" not in page


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/ready", "/ping"])
def test_health(sglang_http: httpx.Client, path: str) -> None:
    assert sglang_http.get(path).status_code == 200


async def test_readiness_tells_a_pause_and_ping_does_not(simulator: Starter) -> None:
    client, _ = await simulator(engine=EngineKind.SGLANG)
    await client.post("/pause_generation")
    assert [(await client.get(path)).status_code for path in ("/ready", "/ping")] == [503, 200]
    await client.post("/continue_generation")
    assert (await client.get("/ready")).status_code == 200


async def test_administration_leaves_a_trace(simulator: Starter) -> None:
    client, running = await simulator(engine=EngineKind.SGLANG)
    for path in ADMIN_POSTS:
        assert (await client.post(path, json={})).status_code == 200
    assert running.core.admin_calls == list(ADMIN_POSTS)


async def test_a_key_guards_all_but_probes(simulator: Starter) -> None:
    client, _ = await simulator(engine=EngineKind.SGLANG, api_key="secret")
    assert [(await client.get(path)).status_code for path in ("/v1/models", "/server_info")] == [401, 401]
    assert [(await client.get(path)).status_code for path in ("/health", "/ready", "/metrics")] == [200, 200, 200]


def test_vllms_routes_are_not_here(sglang_http: httpx.Client) -> None:
    assert sglang_http.get("/version").json() == {"detail": "Not Found"}
