"""One Redis for a module of tests, empty before each; a module that strikes its server starts one of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.state.redis_server import RedisServer, running


@pytest.fixture(scope="module")
def shared_server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    shared_server.ask("FLUSHALL")
    return shared_server
