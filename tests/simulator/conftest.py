"""Real simulator processes, one of each engine for the whole run, and one in the test's own loop for odd settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import httpx
import pytest

from gateway.simulator.server import RunningSimulator, start
from gateway.simulator.settings import SimulatorSettings
from tests.simulator.process import SimulatorProcess

Starter = Callable[..., Awaitable[tuple[httpx.AsyncClient, RunningSimulator]]]


@pytest.fixture(scope="session")
def vllm_process() -> Iterator[SimulatorProcess]:
    with SimulatorProcess("--speed", "0", "--record-api") as process:
        yield process


@pytest.fixture(scope="session")
def sglang_process() -> Iterator[SimulatorProcess]:
    with SimulatorProcess("--engine", "sglang", "--speed", "0", "--record-api") as process:
        yield process


@pytest.fixture
def vllm_http(vllm_process: SimulatorProcess) -> Iterator[httpx.Client]:
    """A client of a vLLM stand-in whose caches, records and faults are empty."""
    with httpx.Client(base_url=vllm_process.url, timeout=30) as client:
        for path in ("/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"):
            client.post(path)
        client.post("/sim/faults", json={"faults": []})
        client.delete("/sim/requests")
        yield client


@pytest.fixture
def sglang_http(sglang_process: SimulatorProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sglang_process.url, timeout=30) as client:
        client.post("/flush_cache")
        client.post("/sim/faults", json={"faults": []})
        client.delete("/sim/requests")
        yield client


@pytest.fixture
async def simulator() -> AsyncIterator[Starter]:
    """Start a simulator in this loop with any settings; speed 0 and a free port unless told otherwise."""
    async with AsyncExitStack() as stack:

        async def begin(**changes: object) -> tuple[httpx.AsyncClient, RunningSimulator]:
            settings = SimulatorSettings(**({"port": 0, "speed": 0.0, "record_api": True} | changes))  # type: ignore[arg-type]
            running = await start(settings)
            stack.push_async_callback(running.close)
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=running.url, timeout=30))
            return client, running

        yield begin
