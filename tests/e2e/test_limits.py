"""A backend's own limits, and the priorities it is told: what does not fit waits here, and the urgent go first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from gateway.api.auth import hash_key
from tests.e2e.processes import DEADLINE_S, PATIENT_PROBES, Engine, Gateway, until, write_policies
from tests.simulator.process import chat

pytestmark = pytest.mark.slow

PATIENT, HURRIED = "vgw-patient-0123456789", "vgw-hurried-0123456789"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine("--decode-tokens-per-s", "200") as running:
        yield running


@pytest.fixture(scope="module")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("limits")
    policies = write_policies(
        folder / "policies",
        patient=f"tenant: patient\nkeys: ['{hash_key(PATIENT)}']\npriority: low\nqueue_timeout_s: 20\n",
        hurried=f"tenant: hurried\nkeys: ['{hash_key(HURRIED)}']\npriority: high\nqueue_timeout_s: 0\n",
    )
    backend = {"url": engine.url, "name": "one", "max_requests": 1, "priorities": True}
    config = folder / "gateway.yaml"
    config.write_text(json.dumps({"backends": [backend], "policies": str(policies), "upstream": {"kv_fill": None}}))
    with Gateway("--config", str(config), "--pool", "1", environment=PATIENT_PROBES) as running:
        yield running


def ask(gateway: Gateway, key: str, tokens: int) -> httpx.Response:
    request = chat("Count.", max_tokens=tokens, ignore_eos=True, priority=-100)
    return httpx.post(
        f"{gateway.url}/v1/chat/completions",
        json=request,
        headers={"authorization": f"Bearer {key}"},
        timeout=DEADLINE_S,
        trust_env=False,
    )


def test_one_at_a_time_and_whoever_cannot_wait_is_told(engine: Engine, gateway: Gateway) -> None:
    with ThreadPoolExecutor(3) as threads:
        with engine.frozen():
            waiting = [threads.submit(ask, gateway, PATIENT, 60) for _ in range(3)]
            until(lambda: gateway.metric("backend_inflight") == 1, "the first request")
            until(lambda: gateway.metric("budget_waiting_requests") == 2, "two that wait")
            refused = ask(gateway, HURRIED, 1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "backends_full")
        assert int(refused.headers["retry-after"]) >= 1
        assert [answer.result().status_code for answer in waiting] == [200, 200, 200]
    requests = engine.requests()
    assert [request["in_flight"] for request in requests] == [1, 1, 1]
    # vLLM serves the smallest number first; what the client sent is gone.
    assert {request["body"]["priority"] for request in requests} == {1}
    until(lambda: gateway.metric("backend_inflight") == 0, "the end of the last")
    assert ask(gateway, HURRIED, 1).status_code == 200
    assert engine.requests()[-1]["body"]["priority"] == -1
