from __future__ import annotations

import httpx
import pytest

from gateway.simulator.vllm_routes import ADMIN_GETS, ADMIN_POSTS
from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.process import MODEL, chat, image_part


def test_what_discovery_reads(vllm_http: httpx.Client) -> None:
    card = vllm_http.get("/v1/models").json()["data"][0]
    assert (card["id"], card["root"], card["max_model_len"]) == (MODEL, MODEL, 32_768)
    assert vllm_http.get("/version").json() == {"version": "0.32.0"}
    assert vllm_http.get("/load").json() == {"server_load": 0}
    health = vllm_http.get("/health")
    assert (health.status_code, health.content) == (200, b"")


def test_metrics_count_what_was_done(vllm_http: httpx.Client) -> None:
    def value(name: str) -> float:
        lines = vllm_http.get("/metrics").text.splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}{{"))

    before = value("generation_tokens_total"), value("mm_cache_hits_total")
    for _ in range(2):
        vllm_http.post("/v1/chat/completions", json=chat(image_part(drawn.data_url(drawn.jpeg(64, 64))), max_tokens=3))
    assert value("generation_tokens_total") - before[0] == 6
    assert value("mm_cache_hits_total") - before[1] == 1


@pytest.mark.parametrize("path", ["/v1/embeddings", "/nothing", "/model_info", "/generate"])
def test_unknown_routes_answer_as_fastapi_does(vllm_http: httpx.Client, path: str) -> None:
    answer = vllm_http.post(path, json={})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})
    wrong_method = vllm_http.get("/v1/chat/completions")
    assert (wrong_method.status_code, wrong_method.json()) == (405, {"detail": "Method Not Allowed"})


def test_scale_out_routes_are_forbidden(vllm_http: httpx.Client) -> None:
    assert vllm_http.post("/v1/chat/completions/render", json={}).status_code == 403


async def test_administration_is_there_and_leaves_a_trace(simulator: Starter) -> None:
    client, running = await simulator()
    for path in ADMIN_POSTS:
        assert (await client.post(path)).status_code == 200
    for path in ADMIN_GETS:
        assert (await client.get(path)).status_code == 200
    assert (await client.get("/sim/requests")).json()["admin_calls"] == [*ADMIN_POSTS, *ADMIN_GETS]
    assert running.core.engine.is_paused is False


async def test_pausing_holds_new_work(simulator: Starter) -> None:
    client, running = await simulator()
    await client.post("/pause?mode=wait")
    assert (await client.get("/is_paused")).json() == {"is_paused": True}
    await client.post("/resume")
    assert (await client.post("/v1/chat/completions", json=chat("Hi"))).status_code == 200
    assert running.core.engine.load().waiting == 0


async def test_a_key_guards_v1_and_nothing_else(simulator: Starter) -> None:
    client, _ = await simulator(api_key="secret")
    refused = await client.get("/v1/models")
    assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
    assert (await client.get("/v1/models", headers={"Authorization": "Bearer secret"})).status_code == 200
    assert (await client.get("/metrics")).status_code == 200
    assert (await client.post("/reset_mm_cache")).status_code == 200


async def test_health_tells_a_dead_engine(simulator: Starter) -> None:
    client, running = await simulator()
    running.core.engine.lose()
    assert (await client.get("/health")).status_code == 503
    answer = await client.post("/v1/chat/completions", json=chat("Hi"))
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "InternalServerError")
