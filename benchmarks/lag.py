"""How late the loop is while the image pool is asked for four times what it can do, against the idle loop, in one run.

The gateway runs inside this process with real workers, beside a canary of finer grain than its own; the load comes from
other processes. Idle and saturated stretches alternate. Refusals are wanted here: they must not queue behind work.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx

from benchmarks.contenders import module, started
from benchmarks.pictures import build, own_pictures
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts
from gateway.app import Gateway
from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.media.settings import cgroup_cpus

_PERIOD_S = 0.005
_STRETCH_S = 8.0
_OVERLOAD = 4
_JSON = {"Content-Type": "application/json"}


async def _lags_ms(duration_s: float) -> list[float]:
    loop = asyncio.get_running_loop()
    lags = []
    end_s = loop.time() + duration_s
    while loop.time() < end_s:
        asked_s = loop.time()
        await asyncio.sleep(_PERIOD_S)
        lags.append(1000 * max(0.0, loop.time() - asked_s - _PERIOD_S))
    return lags


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def _measure(port: int, picture: Path, rounds: int) -> dict[str, object]:
    flags = {
        "backends": [{"url": f"http://127.0.0.1:{port}", "max_pixels": 1280 * 32 * 32}],
        "server.port": 0,
        "server.admin_port": 0,
        "server.settle_s": 0,
        "log.access": False,
        # Room for what is asked at once, so that the pool stays full instead of refusing everything.
        "media.max_queue_jobs": 4 * _OVERLOAD * cgroup_cpus(),
    }
    settings: Settings = load_settings(None, environment={}, flags=flags)
    gateway = Gateway(settings)
    listening = await gateway.start()
    idle: list[float] = []
    busy: list[float] = []
    answered: dict[str, int] = {}
    try:
        await _lags_ms(1.0)
        for _ in range(rounds):
            idle += await _lags_ms(_STRETCH_S)
            arguments = module("benchmarks.lag", str(listening.data), str(picture), str(_STRETCH_S + 2))
            load = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
            await asyncio.sleep(1.0)
            busy += await _lags_ms(_STRETCH_S)
            output, _ = await load.communicate()
            for status, count in json.loads(output).items():
                answered[status] = answered.get(status, 0) + count
    finally:
        await gateway.stop()
    idle_p99, busy_p99 = _percentile(idle, 0.99), _percentile(busy, 0.99)
    return {
        "lag_p99_ratio": round(busy_p99 / idle_p99, 2),
        "idle": {"p50_ms": round(statistics.median(idle), 3), "p99_ms": round(idle_p99, 3)},
        "saturated": {"p50_ms": round(statistics.median(busy), 3), "p99_ms": round(busy_p99, 3)},
        "answered": answered,
        "machine": machine_facts(),
    }


async def _load(port: int, picture: Path, duration_s: float) -> dict[str, int]:
    """Ask with four times as many requests at once as there are CPUs, each with an image not seen before.

    The asker stands for other machines, so it yields to everything here and builds its bodies by joining bytes.
    """
    os.nice(19)
    data = await asyncio.to_thread(picture.read_bytes)
    data += bytes(-len(data) % 3)  # so that what is appended continues the same base64
    prompt = {
        "model": MODEL,
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "@"}}]}],
    }
    head, tail = json.dumps(prompt).split("@")
    front = head.encode() + b"data:image/jpeg;base64," + base64.b64encode(data)
    end_s = time.monotonic() + duration_s
    counts: dict[str, int] = {}

    async def ask_on(client: httpx.AsyncClient, number: int) -> None:
        sent = 0
        while time.monotonic() < end_s:
            sent += 1
            # Bytes behind the end of a JPEG change its identity, not its pixels.
            body = front + base64.b64encode(f"{number}.{sent}".encode()) + tail.encode()
            with suppress(httpx.TransportError):
                answer = await client.post("/v1/chat/completions", content=body, headers=_JSON)
                counts[str(answer.status_code)] = counts.get(str(answer.status_code), 0) + 1

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
        await asyncio.gather(*(ask_on(client, number) for number in range(_OVERLOAD * cgroup_cpus())))
    return counts


def run(options: Options) -> dict[str, object]:
    """``lag_p99_ratio``: the 99th percentile of the loop's lag under load over the idle loop's."""
    pictures = own_pictures(options.images) if options.images else build()
    picture = next(p.path for p in pictures if p.path.suffix in (".jpg", ".jpeg"))
    with started(module("benchmarks.stub")) as (_, at):
        return asyncio.run(_measure(int(str(at["port"])), picture, options.rounds or 2))


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    parts = {name: cast("dict[str, float]", report[name]) for name in ("idle", "saturated")}
    lines = [f"{name:10} p50 {part['p50_ms']:7.3f} ms  p99 {part['p99_ms']:7.3f} ms" for name, part in parts.items()]
    return [*lines, f"saturated / idle at p99: {report['lag_p99_ratio']}"]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_load(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))))
