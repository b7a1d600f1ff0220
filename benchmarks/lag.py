"""How late the loop is while the image pool is asked for four times what it can do, against the idle loop, in one run.

The gateway runs inside this process with real workers, beside a canary of finer grain than its own; the load comes from
other processes. Idle and saturated stretches alternate. The line in front of the workers has room for half of what is
asked at once; the rest is refused, and so is now and then what a probe asks besides: how long a refusal takes is
measured, since it must not queue behind work. Where the kernel tells (``/proc/self/schedstat``), how long the loop was
kept from a CPU is told apart from how long it was at work itself.
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
import numpy as np
import simplejpeg

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
_PROBE_PAUSE_S = 0.05
# Latencies in milliseconds by status.
_Asked = dict[str, list[float]]
_JSON = {"Content-Type": "application/json"}


async def lags_ms(duration_s: float) -> list[float]:
    """How late a short sleep came back, again and again for so long."""
    loop = asyncio.get_running_loop()
    lags = []
    end_s = loop.time() + duration_s
    while loop.time() < end_s:
        asked_s = loop.time()
        await asyncio.sleep(_PERIOD_S)
        lags.append(1000 * max(0.0, loop.time() - asked_s - _PERIOD_S))
    return lags


def _kept_waiting_s() -> float:
    """How long this thread was ready to run and did not, since it began; 0 where the kernel does not tell."""
    path = Path("/proc/thread-self/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.is_file() else 0.0


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def _measure(port: int, picture: Path, rounds: int) -> dict[str, object]:
    flags = {
        "backends": [{"url": f"http://127.0.0.1:{port}", "max_pixels": 1280 * 32 * 32}],
        "server.port": 0,
        "server.admin_port": 0,
        "server.settle_s": 0,
        "log.access": False,
        # Room for half of what is asked at once: the pool stays full, and the rest is refused.
        "media.max_queue_jobs": _OVERLOAD * cgroup_cpus() // 2,
    }
    settings: Settings = load_settings(None, environment={}, flags=flags)
    gateway = Gateway(settings)
    listening = await gateway.start()
    idle: list[float] = []
    busy: list[float] = []
    waited_s = {"idle": 0.0, "saturated": 0.0}
    loads: list[_Asked] = []
    probes: list[_Asked] = []
    try:
        await lags_ms(1.0)
        for _ in range(rounds):
            before_s = _kept_waiting_s()
            idle += await lags_ms(_STRETCH_S)
            waited_s["idle"] += _kept_waiting_s() - before_s
            load = await _start("load", listening.data, picture)
            probe = await _start("probe", listening.data, picture)
            await asyncio.sleep(1.0)
            before_s = _kept_waiting_s()
            busy += await lags_ms(_STRETCH_S)
            waited_s["saturated"] += _kept_waiting_s() - before_s
            loads.append(json.loads((await load.communicate())[0]))
            probes.append(json.loads((await probe.communicate())[0]))
    finally:
        await gateway.stop()
    return {
        "lag_p99_ratio": round(percentile(busy, 0.99) / percentile(idle, 0.99), 2),
        "idle": _lag_facts(idle, waited_s["idle"] / rounds),
        "saturated": _lag_facts(busy, waited_s["saturated"] / rounds),
        "answered": _latencies(loads),
        "probe": _latencies(probes),
        "machine": machine_facts(),
    }


def _lag_facts(lags_ms: list[float], waited_s: float) -> dict[str, float]:
    return {
        "p50_ms": round(statistics.median(lags_ms), 3),
        "p99_ms": round(percentile(lags_ms, 0.99), 3),
        "kept_from_cpu_ms_per_s": round(1000 * waited_s / _STRETCH_S, 1),
    }


def _latencies(asked: list[_Asked]) -> dict[str, dict[str, float]]:
    """By status: how many, and how long they took."""
    taken: dict[str, list[float]] = {}
    for each in asked:
        for status, latencies_ms in each.items():
            taken.setdefault(status, []).extend(latencies_ms)
    return {
        status: {
            "count": len(latencies_ms),
            "p50_ms": round(statistics.median(latencies_ms), 1),
            "p99_ms": round(percentile(latencies_ms, 0.99), 1),
        }
        for status, latencies_ms in sorted(taken.items())
    }


async def _start(part: str, port: int, picture: Path) -> asyncio.subprocess.Process:
    arguments = module("benchmarks.lag", part, str(port), str(picture), str(_STRETCH_S + 2))
    return await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)


class _Body:
    """A request with an image that was not seen before, as often as wanted; bodies are built by joining bytes."""

    def __init__(self, file: bytes) -> None:
        file += bytes(-len(file) % 3)  # so that what is appended continues the same base64
        image = {"type": "image_url", "image_url": {"url": "@"}}
        head, tail = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": [image]}]}).split("@")
        self._front = head.encode() + b"data:image/jpeg;base64," + base64.b64encode(file)
        self._tail = tail.encode()

    def numbered(self, number: str) -> bytes:
        """Bytes behind the end of a JPEG change its identity, not its pixels."""
        return self._front + base64.b64encode(number.encode()) + self._tail


async def _ask(client: httpx.AsyncClient, body: bytes, asked: _Asked) -> None:
    began_s = time.monotonic()
    with suppress(httpx.TransportError):
        answer = await client.post("/v1/chat/completions", content=body, headers=_JSON)
        asked.setdefault(str(answer.status_code), []).append(1000 * (time.monotonic() - began_s))


def _client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)


async def _load(port: int, file: bytes, duration_s: float) -> _Asked:
    """Ask with four times as many requests at once as there are CPUs; a refused one comes back after a second.

    The asker stands for other machines, so it yields to everything here.
    """
    os.nice(19)
    body, asked = _Body(file), _Asked()
    end_s = time.monotonic() + duration_s

    async def ask_on(client: httpx.AsyncClient, number: int) -> None:
        sent = 0
        while time.monotonic() < end_s:
            sent += 1
            refused = len(asked.get("503", ()))
            await _ask(client, body.numbered(f"{number}.{sent}"), asked)
            if len(asked.get("503", ())) > refused:
                await asyncio.sleep(1.0)

    async with _client(port) as client:
        await asyncio.gather(*(ask_on(client, number) for number in range(_OVERLOAD * cgroup_cpus())))
    return asked


async def _probe(port: int, file: bytes, duration_s: float) -> _Asked:
    """Ask once in a while with a small picture, one request at a time."""
    pixels = simplejpeg.decode_jpeg(file, colorspace="RGB")[:1536, :2048]
    body, asked = _Body(simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), quality=80)), _Asked()
    end_s = time.monotonic() + duration_s
    async with _client(port) as client:
        sent = 0
        while time.monotonic() < end_s:
            sent += 1
            await _ask(client, body.numbered(f"probe.{sent}"), asked)
            await asyncio.sleep(_PROBE_PAUSE_S)
    return asked


def run(options: Options) -> dict[str, object]:
    """``lag_p99_ratio``: the 99th percentile of the loop's lag under load over the idle loop's."""
    pictures = own_pictures(options.images) if options.images else build()
    picture = next(p.path for p in pictures if p.path.suffix in (".jpg", ".jpeg"))
    with started(module("benchmarks.stub")) as (_, at):
        return asyncio.run(_measure(int(str(at["port"])), picture, options.rounds or 2))


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    parts = {name: cast("dict[str, float]", report[name]) for name in ("idle", "saturated")}
    lines = [
        f"{name:10} p50 {part['p50_ms']:7.3f} ms  p99 {part['p99_ms']:7.3f} ms"
        f"  kept from a CPU {part['kept_from_cpu_ms_per_s']:6.1f} ms a second"
        for name, part in parts.items()
    ]
    for name in ("answered", "probe"):
        for status, taken in cast("dict[str, dict[str, float]]", report[name]).items():
            times = f"p50 {taken['p50_ms']:8.1f} ms  p99 {taken['p99_ms']:8.1f} ms"
            lines.append(f"{name:10} {status} {int(taken['count']):6}  {times}")
    return [*lines, f"saturated / idle at p99: {report['lag_p99_ratio']}"]


if __name__ == "__main__":
    _part = {"load": _load, "probe": _probe}[sys.argv[1]]
    print(json.dumps(asyncio.run(_part(int(sys.argv[2]), Path(sys.argv[3]).read_bytes(), float(sys.argv[4])))))
