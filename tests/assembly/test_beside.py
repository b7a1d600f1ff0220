"""Who stands beside the gateway is asked once, and what is wrong is said without a password."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gateway.assembly.beside import Neighbour, neighbours
from gateway.config.settings import RedisConfig, Settings
from gateway.config.tracing import TracingConfig
from tests.state.redis_server import RedisServer, running

PASSWORD = "of-this-test"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running("--requirepass", PASSWORD, password=PASSWORD) as started:
        yield started


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that is taken and that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


async def test_nothing_configured_is_nothing_asked() -> None:
    assert await neighbours(Settings()) == []


async def test_a_store_that_lets_us_in_is_there(server: RedisServer) -> None:
    settings = replace(Settings(), redis=RedisConfig(url=server.url, password=PASSWORD))
    assert await neighbours(settings) == [Neighbour("redis.url")]


async def test_a_refused_password_is_told_and_not_repeated(server: RedisServer) -> None:
    (found,) = await neighbours(replace(Settings(), redis=RedisConfig(url=server.url, password="another-one")))
    assert found.problem.startswith("denied: ")
    assert "another-one" not in found.problem


async def test_nobody_there_is_told_of_store_and_collector(nobody: int) -> None:
    settings = replace(
        Settings(),
        redis=RedisConfig(url=f"redis://127.0.0.1:{nobody}"),
        tracing=TracingConfig(otlp_endpoint=f"http://127.0.0.1:{nobody}"),
    )
    store, collector = await neighbours(settings)
    assert store.problem.startswith("no_connection: ")
    assert collector == Neighbour("tracing.otlp_endpoint", "cannot be reached: Connection refused")


async def test_a_collector_that_listens_is_there() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"
        settings = replace(Settings(), tracing=TracingConfig(otlp_endpoint=endpoint))
        assert await neighbours(settings) == [Neighbour("tracing.otlp_endpoint")]
