"""How much later the loop is while its metrics are scraped every second, against the same load unscraped, in one run.

The gateway runs inside this process, fifty tenants and twenty backends as a large installation has them, beside a
canary of finer grain than its own; load and scraper are other processes. Stretches with and without scrapes alternate
in pairs, whose order is drawn, so that a busy machine disturbs both alike. The page asked for is the one of Prometheus.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx

from benchmarks.contenders import module, started
from benchmarks.lag import lags_ms, percentile
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts
from gateway.app import Gateway
from gateway.config.sources import load_settings

_TENANTS, _BACKENDS = 50, 20
_STRETCH_S = 5.0
_WARM_UP_S = 3.0
_AT_ONCE = 8
_LOAD_LIMIT_S = 3600.0  # ended when all is measured
# As Prometheus asks.
_ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"


def _key(tenant: int) -> str:
    return f"vgw-tenant-{tenant:04d}-0123456789"


def _policies(folder: Path) -> Path:
    for tenant in range(_TENANTS):
        digest = hashlib.sha256(_key(tenant).encode()).hexdigest()
        text = f"tenant: tenant-{tenant}\nkeys: ['sha256:{digest}']\nkv_tokens_in_flight: 1000000\n"
        (folder / f"tenant-{tenant}.yaml").write_text(text, encoding="utf-8")
    return folder


async def _measure(port: int, folder: Path, rounds: int) -> dict[str, object]:
    flags = {
        "backends": [{"name": f"backend-{number}", "url": f"http://127.0.0.1:{port}"} for number in range(_BACKENDS)],
        "policies": str(_policies(folder)),
        "server.port": 0,
        "server.admin_port": 0,
        "server.settle_s": 0,
        "log.access": False,
    }
    gateway = Gateway(load_settings(None, environment={}, flags=flags))
    listening = await gateway.start()
    lags: dict[bool, list[float]] = {False: [], True: []}
    scrapes: list[float] = []
    page = b""
    shuffle = random.Random(1).shuffle
    load: asyncio.subprocess.Process | None = None
    try:
        load = await _start("load", listening.data, _LOAD_LIMIT_S)
        await lags_ms(_WARM_UP_S)
        for _ in range(rounds):
            order = [False, True]
            shuffle(order)
            for is_scraped in order:
                scraper = await _start("scraper", listening.admin, _STRETCH_S) if is_scraped else None
                await lags_ms(0.5)
                lags[is_scraped] += await lags_ms(_STRETCH_S - 0.5)
                if scraper is not None:
                    scrapes += json.loads((await scraper.communicate())[0])
        async with httpx.AsyncClient(trust_env=False) as client:
            page = (await client.get(f"http://127.0.0.1:{listening.admin}/metrics")).content
    finally:
        if load is not None:
            load.terminate()
            await load.wait()
        await gateway.stop()
    lines = [line for line in page.decode().splitlines() if not line.startswith("#")]
    facts = {
        name: {"p50_ms": round(statistics.median(found), 3), "p99_ms": round(percentile(found, 0.99), 3)}
        for name, found in (("unscraped", lags[False]), ("scraped", lags[True]))
    }
    return {
        "lag_p99_ratio": round(percentile(lags[True], 0.99) / percentile(lags[False], 0.99), 3),
        **facts,
        "scrape_ms": {
            "count": len(scrapes),
            "p50": round(statistics.median(scrapes), 1),
            "max": round(max(scrapes), 1),
        },
        "series": len(lines),
        "answered": sum(float(line.split()[-1]) for line in lines if line.startswith("vlmgw_requests_total{")),
        "machine": machine_facts(),
    }


async def _start(part: str, port: int, duration_s: float) -> asyncio.subprocess.Process:
    arguments = module("benchmarks.scrape", part, str(port), str(duration_s))
    return await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)


async def _load(port: int, duration_s: float) -> None:
    """Text requests of all tenants, a few at once, as fast as they are answered."""
    os.nice(19)
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hello."}]}).encode()
    end_s = time.monotonic() + duration_s

    async def ask_on(client: httpx.AsyncClient, number: int) -> None:
        tenant = number
        while time.monotonic() < end_s:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {_key(tenant % _TENANTS)}"}
            tenant += _AT_ONCE + 1
            with suppress(httpx.TransportError):
                await client.post("/v1/chat/completions", content=body, headers=headers)

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
        await asyncio.gather(*(ask_on(client, number) for number in range(_AT_ONCE)))


async def _scraper(port: int, duration_s: float) -> list[float]:
    """A scrape every second; what each took, in milliseconds."""
    taken: list[float] = []
    end_s = time.monotonic() + duration_s
    async with httpx.AsyncClient(trust_env=False, headers={"Accept": _ACCEPT}) as client:
        while time.monotonic() < end_s:
            began_s = time.monotonic()
            await client.get(f"http://127.0.0.1:{port}/metrics")
            taken.append(1000 * (time.monotonic() - began_s))
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began_s)))
    return taken


def run(options: Options) -> dict[str, object]:
    """``lag_p99_ratio``: the 99th percentile of the loop's lag with a scrape a second over that without."""
    with started(module("benchmarks.stub")) as (_, at), tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(int(str(at["port"])), Path(folder), options.rounds or 6))


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    lines = []
    for name in ("unscraped", "scraped"):
        part = cast("dict[str, float]", report[name])
        lines.append(f"{name:10} p50 {part['p50_ms']:7.3f} ms  p99 {part['p99_ms']:7.3f} ms")
    scrape = cast("dict[str, float]", report["scrape_ms"])
    lines.append(
        f"{scrape['count']} scrapes of {report['series']} series: p50 {scrape['p50']} ms, max {scrape['max']} ms"
    )
    return [
        *lines,
        f"{report['answered']:.0f} requests answered",
        f"scraped / unscraped at p99: {report['lag_p99_ratio']}",
    ]


if __name__ == "__main__":
    _part = {"load": _load, "scraper": _scraper}[sys.argv[1]]
    print(json.dumps(asyncio.run(_part(int(sys.argv[2]), float(sys.argv[3])))))
