"""The processes of a soak: a gateway as its users run it, two simulated engines, Redis, and an origin of pictures.

Caches are small, so that they are full when the warm-up is over and what grows afterwards grows for no good reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.api.auth import hash_key
from tests.e2e.processes import Gateway, write_policies
from tests.simulator import drawn
from tests.simulator.process import SimulatorProcess
from tests.state.redis_server import RedisServer

MAIN, TIGHT, RATED = "vgw-main-0123456789", "vgw-tight-0123456789", "vgw-rated-0123456789"
HOST = "pictures.example.test"
MAX_BODY_BYTES = 12 * 1024 * 1024
_CAP_PIXELS = 1280 * 32 * 32
_MIB = 1024 * 1024
_ENGINE = ("--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9", "--decode-tokens-per-s", "400",
           "--max-pixels", str(_CAP_PIXELS))  # fmt: skip
_POLICIES = {
    "default": "rules:\n  max_images: 4\n",
    "main": f"tenant: main\nkeys: ['{hash_key(MAIN)}']\nqueue_timeout_s: 60\nhosts: ['{HOST}']\n",
    "tight": f"tenant: tight\nkeys: ['{hash_key(TIGHT)}']\nrequests_in_flight: 1\nqueue_timeout_s: 60\n",
    "rated": f"tenant: rated\nkeys: ['{hash_key(RATED)}']\nqueue_timeout_s: 0\nrates: {{requests: 2/min}}\n",
}
# A busy machine is no dead engine: what fails here fails for another reason.
_PATIENCE = {
    "VLMGW_UPSTREAM_PROBE_INTERVAL_S": "2",
    "VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "60",
    "VLMGW_UPSTREAM_CONNECT_TIMEOUT_S": "60",
    "VLMGW_REDIS_DEADLINE_S": "20",
    "VLMGW_FETCH_TOTAL_TIMEOUT_S": "60",
}
# What is held of a tenant's budget, by its key in the store.
SUMS = tuple(f"vlmgw:1:{{{tenant}}}:sums" for tenant in ("main", "tight", "rated", "default"))


@dataclass(frozen=True, slots=True)
class Site:
    """``origin_port`` is where pictures are fetched from, under ``HOST``."""

    gateway: Gateway
    redis: RedisServer
    policies: Path
    origin_port: int

    def reload_differently(self, number: int) -> None:
        """Make the next reload change something."""
        write_policies(self.policies, tight=f"{_POLICIES['tight']}rules: {{jpeg_quality: {90 + number % 5}}}\n")


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """Everything up and ready; gone afterwards."""
    server = await asyncio.start_server(_serve_picture, "127.0.0.1", 0)
    with ExitStack() as stack:
        redis = RedisServer(folder)
        redis.start()
        stack.callback(redis.kill)
        engines = [stack.enter_context(SimulatorProcess(*_ENGINE)) for _ in range(2)]
        policies = write_policies(folder / "policies", **_POLICIES)
        config = folder / "gateway.yaml"
        config.write_text(json.dumps(_config([engine.url for engine in engines], policies, redis.url)))
        started = Gateway("--config", str(config), environment=_PATIENCE)
        gateway = await asyncio.to_thread(stack.enter_context, started)
        yield Site(gateway, redis, policies, server.sockets[0].getsockname()[1])
    server.close()


def _config(engines: list[str], policies: Path, redis_url: str) -> dict[str, object]:
    return {
        "backends": [{"url": url, "max_pixels": _CAP_PIXELS, "image_cache_bytes": 64 * _MIB} for url in engines],
        "upstream": {"index_entries": 2_048},
        "policies": str(policies),
        "redis": {"url": redis_url},
        # Reloads are asked for here.
        "server": {"max_body_bytes": MAX_BODY_BYTES, "watch_interval_s": 0},
        "media": {"workers": 1, "slab_bytes": 128 * _MIB, "prepared_cache_bytes": 8 * _MIB, "facts_cache_entries": 128},
        "fetch": {"cache_bytes": 2 * _MIB, "public_networks": ["127.0.0.1/32"], "static_hosts": {HOST: "127.0.0.1"}},
        "routes": [{"path": "/v1/realtime", "websocket": True}],
    }


async def _serve_picture(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Another picture at every path; ``/gone`` has none."""
    try:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        if target.startswith(b"/gone"):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            number = int.from_bytes(target[-3:], "big")
            picture = drawn.jpeg(320, 240, (number & 255, number >> 8 & 255, number >> 16 & 255))
            head = f"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n"
            writer.write(f"{head}Cache-Control: max-age=60\r\nConnection: close\r\n\r\n".encode() + picture)
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass  # whoever asked has left
    finally:
        writer.close()
