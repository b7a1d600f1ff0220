"""Two replicas and one Redis: what one has prepared the other need not, and without the Redis both go on."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.app.running import COMPLETION, Running, engine, running, until
from tests.media.test_service import png
from tests.state.redis_server import RedisServer
from tests.state.redis_server import running as redis_running
from tests.upstream.scripted import answering, json_response

pytestmark = pytest.mark.slow


def flags(server: RedisServer) -> dict[str, Any]:
    return {
        "media.shared_cache_bytes": 16 << 20,
        "media.shared_cache_deadline_s": 5.0,
        "redis.url": server.url,
        "identity.secret": "of-this-test-0123456789",
    }


async def ask(replica: Running, width: int) -> None:
    # Its declared type is wrong, so it has to be prepared.
    url = "data:image/jpeg;base64," + base64.b64encode(png(width, 64)).decode()
    answer = await replica.chat(
        messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    )
    assert answer.status_code == 200, answer.text


async def test_what_one_replica_prepared_another_finds() -> None:
    script = engine(answering(json_response(COMPLETION)))
    with redis_running() as server:
        async with running(script, **flags(server)) as one, running(script, **flags(server)) as other:
            await ask(one, 700)
            assert await other.metric("vlmgw_shared_cache_queries_total") == 0

            async def is_shared() -> bool:
                return server.ask("DBSIZE") != b":0\r\n"

            await until(is_shared)
            await ask(other, 700)
            assert await other.metric("vlmgw_shared_cache_hits_total") == 1
            assert await other.metric("vlmgw_pool_task_seconds_count", operation="prepare") == 0
            server.kill()
            await ask(other, 800)
            await ask(other, 700)
            assert await other.metric("vlmgw_pool_task_seconds_count", operation="prepare") == 1
