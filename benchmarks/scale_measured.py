"""What the page of scale is computed from, measured with real processes: requests, Redis, watching many backends.

CPU as the kernel accounts it, so that a busy machine changes little. Decided here: what is measured and in which unit.
Not decided here: what follows from it (`scale`).
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
import numpy as np
import simplejpeg

from benchmarks.contenders import Asker, Contender, cpu_s, family_of, module, started
from benchmarks.stub import MODEL
from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import Rate
from gateway.quota.store import Granted
from gateway.routing.beliefs import Beliefs
from gateway.routing.blocks.index import BlockIndex
from gateway.routing.holding import RouteKey
from gateway.routing.index import Room
from gateway.state.link import Link
from gateway.state.redis import RedisWire
from gateway.state.redis_hints import read
from gateway.state.redis_store import RedisStore
from gateway.state.scripts import SCRIPTS
from gateway.state.settings import RedisSettings
from gateway.types import BackendName, TenantId
from gateway.upstream.kv_events.wire import read_batch
from tests.state.redis_server import RedisServer, running

_CAP = "1280x32x32"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Served:
    """A running gateway."""

    pid: int
    port: int
    admin_port: int

    @property
    def loop_cpu_s(self) -> float:
        """CPU of its own process alone: the loop, and the threads beside it."""
        total_ns = 0
        for schedstat in Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            total_ns += int(schedstat.read_text().split()[0])
        return total_ns / 1e9

    @property
    def rss_mib(self) -> float:
        """Resident memory of its own process."""
        return _rss_mib(self.pid)

    def page(self) -> list[str]:
        """The samples of /metrics."""
        text = httpx.get(f"http://127.0.0.1:{self.admin_port}/metrics", trust_env=False, timeout=60).text
        return [line for line in text.splitlines() if not line.startswith("#")]

    def sum_of(self, name: str, label: str = "") -> float:
        """All samples of a metric whose labels contain ``label``."""
        return sum(
            float(line.split()[-1]) for line in self.page() if line.startswith(f"vlmgw_{name}{{") and label in line
        )


@contextmanager
def gateway(config: Mapping[str, object], **environment: str) -> Iterator[Served]:
    """One with this configuration; its log is read and thrown away, as in service."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gateway.yaml")
        path.write_text(json.dumps(config), encoding="utf-8")
        command = module("gateway", "serve", "--config", str(path), "--port", "0", "--admin-port", "0")
        quick = {"VLMGW_SERVER_SETTLE_S": "0", "VLMGW_SERVER_DRAIN_TIMEOUT_S": "1"}
        with started(command, **quick, **environment) as (process, ready):
            assert process.stdout is not None
            reader = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
            try:
                yield Served(process.pid, int(str(ready["data_port"])), int(str(ready["admin_port"])))
            finally:
                reader.kill()
                reader.wait()


def _rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / _MIB


# --- requests ---------------------------------------------------------------------------------------------------------


def requests(rounds: int) -> dict[str, dict[str, float]]:
    """CPU of a request by class, the loop's apart from all; bytes in and out."""
    with started(module("benchmarks.stub")) as (_, at):
        backend = {"url": f"http://127.0.0.1:{at['port']}", "max_pixels": _CAP}
        with gateway({"backends": [backend], "media": {"workers": 1, "spare_workers": 0}}) as served:
            asker = Asker(Contender("gateway", served.port, served.pid, {}))
            return {name: _cost(served, asker, bodies, count) for name, bodies, count in _classes(rounds)}


def _classes(rounds: int) -> list[tuple[str, Iterator[bytes], int]]:
    small, large = _photograph(1400, 900, 80), _photograph(4000, 3000, 85)
    text = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "How are you?"}]}).encode()
    return [
        ("text", itertools.repeat(text), 15 * rounds),
        ("known", itertools.repeat(_body(small)), 5 * rounds),
        ("new_under_the_cap", (_body(_named(small, number)) for number in itertools.count()), 3 * rounds),
        ("new_12_megapixels", (_body(_named(large, number)) for number in itertools.count()), rounds),
    ]


def _cost(served: Served, asker: Asker, bodies: Iterator[bytes], count: int) -> dict[str, float]:
    for _ in range(3):
        asker.ask(next(bodies))
    asker.renew()
    in_before, out_before = served.sum_of("image_bytes_total", "in"), served.sum_of("image_bytes_total", "out")
    sent = [next(bodies) for _ in range(count)]
    loop_s, all_s = served.loop_cpu_s, cpu_s(served.pid)
    for body in sent:
        asker.ask(body)
    loop_s, all_s = served.loop_cpu_s - loop_s, cpu_s(served.pid) - all_s
    return {
        "requests": count,
        "loop_cpu_ms": round(1e3 * loop_s / count, 3),
        "worker_cpu_ms": round(max(0.0, 1e3 * (all_s - loop_s) / count), 3),
        "request_bytes": round(statistics.mean(map(len, sent))),
        "image_bytes_in": round((served.sum_of("image_bytes_total", "in") - in_before) / count),
        "image_bytes_out": round((served.sum_of("image_bytes_total", "out") - out_before) / count),
    }


def _photograph(width: int, height: int, quality: int) -> bytes:
    """Soft shapes under the noise of a sensor: some 300 KB below the cap, 4 MB at twelve megapixels."""
    across, down = np.meshgrid(np.linspace(0, 9, width), np.linspace(0, 7, height))
    noise = np.random.default_rng(7).normal(0, 9, (height, width, 1))
    pixels = np.clip(128 + 60 * (np.sin(across) * np.cos(down))[..., None] + noise, 0, 255)
    return bytes(simplejpeg.encode_jpeg(np.repeat(pixels, 3, axis=2).astype(np.uint8), quality=quality))


def _named(file: bytes, number: int) -> bytes:
    """The same picture as another file: a comment behind the first marker."""
    comment = b"number %d" % number
    return file[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + file[2:]


def _body(file: bytes) -> bytes:
    url = "data:image/jpeg;base64," + base64.b64encode(file).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is in the picture?"}]
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}]}).encode()


# --- Redis ------------------------------------------------------------------------------------------------------------


def redis(rounds: int) -> dict[str, object]:
    """Commands of a request through a real gateway; and what takes and ends cost the server, one tenant or many."""
    with running() as server:
        commands = _commands_per_request(server, 10 * rounds)
        asyncio.run(_pairs(server, 50, tenants=1))
        one, own = asyncio.run(_pairs(server, 100 * rounds, tenants=1))
        many, _ = asyncio.run(_pairs(server, 100 * rounds, tenants=256))
        memory = int(_info(server, "memory")["used_memory"])
    return {
        "scripts_per_request": commands,
        "server_cpu_us_per_request": {"one_tenant": round(one, 1), "256_tenants": round(many, 1)},
        "requests_per_s_of_one_core": round(1e6 / max(one, many)),
        "gateway_cpu_us_per_request": round(own, 1),
        "used_memory_bytes": memory,
    }


def _commands_per_request(server: RedisServer, count: int) -> float:
    with started(module("benchmarks.stub")) as (_, at):
        config = {"backends": [{"url": f"http://127.0.0.1:{at['port']}"}], "redis": {"share_hints": False}}
        with gateway(config, VLMGW_REDIS_URL=server.url) as served:
            asker = Asker(Contender("gateway", served.port, served.pid, {}))
            body = next(_classes(1)[0][1])
            asker.ask(body)
            before = server.calls("EVALSHA")
            for _ in range(count):
                asker.ask(body)
            return round((server.calls("EVALSHA") - before) / count, 2)


async def _pairs(server: RedisServer, count: int, *, tenants: int, lanes: int = 8) -> tuple[float, float]:
    """(server's, our) CPU microseconds of a take and its end; ``lanes`` replicas at once, 16 in flight on each."""
    settings = RedisSettings(server.url)
    rate = Rate(10**9, 60)
    wires = [RedisWire(settings, SCRIPTS) for _ in range(lanes)]
    links = [Link(wire, deadline_s=60.0, on_down=lambda _: None) for wire in wires]
    for link in links:
        await link.open()
    stores = [
        RedisStore(link.ask, prefix="vlmgw", replica=f"r{n}", lease_s=60.0, aside_s=60.0)
        for n, link in enumerate(links)
    ]
    numbers = itertools.count(1)
    left = itertools.count()

    async def keep_asking(store: RedisStore) -> None:
        while (at := next(left)) < count:
            tenant = TenantId(f"t{at % tenants}")
            charges = (Charge(Unit.TOKENS, 100, rate), Charge(Unit.REQUESTS, 1, rate))
            claim = Claim(tenant, (Hold(Unit.KV_TOKENS, 100, 10**9), Hold(Unit.REQUESTS, 1, 10**6)), charges)
            name = ReservationId(next(numbers))
            assert isinstance(await store.take(claim, name, 0), Granted)
            await store.settle(name, [charge.cost_us for charge in charges], 0)

    before_s, own_s = _server_cpu_s(server), time.process_time()
    await asyncio.gather(*(keep_asking(store) for store in stores for _ in range(16)))
    server_us = 1e6 * (_server_cpu_s(server) - before_s) / count
    own_us = 1e6 * (time.process_time() - own_s) / count
    for link in links:
        await link.close()
    return server_us, own_us


def _server_cpu_s(server: RedisServer) -> float:
    facts = _info(server, "cpu")
    return float(facts["used_cpu_sys_main_thread"]) + float(facts["used_cpu_user_main_thread"])


def _info(server: RedisServer, section: str) -> dict[str, str]:
    lines = server.ask("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


# --- many backends ----------------------------------------------------------------------------------------------------


def watching(backends: int, seconds: float = 10.0) -> dict[str, float]:
    """A gateway that watches so many backends and serves nobody: CPU, memory, metrics. All are one simulator.

    The simulator answers as a real engine does, a page of metrics as long as vLLM's included.
    """
    command = module("gateway.simulator", "--port", "0")
    with started(command) as (_, at):
        listed = [{"name": f"backend-{number}", "url": str(at["url"])} for number in range(backends)]
        page = httpx.get(f"{at['url']}/metrics", trust_env=False).content
        with gateway({"backends": listed, "media": {"workers": 1, "spare_workers": 0}}) as served:
            _wait_all_known(served, backends)
            began_s, cpu = time.monotonic(), served.loop_cpu_s
            time.sleep(seconds)
            taken_s, used_s = time.monotonic() - began_s, served.loop_cpu_s - cpu
            cpu = served.loop_cpu_s
            series = len(served.page())
            return {
                "backends": backends,
                "watching_cpu_share": round(used_s / taken_s, 3),
                "scrape_page_bytes": len(page),
                "rss_mib": round(served.rss_mib),
                "series": series,
                "metrics_page_cpu_ms": round(1e3 * (served.loop_cpu_s - cpu)),
            }


def _wait_all_known(served: Served, backends: int) -> None:
    deadline_s = time.monotonic() + 120
    while served.sum_of("backend_up") < backends:
        if time.monotonic() > deadline_s:
            raise RuntimeError("not all backends were found")
        time.sleep(1)


def memory_of_workers() -> dict[str, float]:
    """Resident memory of a gateway at rest and of one image worker."""
    with started(module("benchmarks.stub")) as (_, at):
        backends = [{"url": f"http://127.0.0.1:{at['port']}"}]
        config = {"backends": backends, "media": {"workers": 2, "spare_workers": 0}}
        with gateway(config) as served:
            children = [pid for pid in family_of(served.pid) if pid != served.pid]
            return {"gateway_mib": round(served.rss_mib), "worker_mib": round(max(map(_rss_mib, children), default=0))}


# --- what replicas and engines tell -----------------------------------------------------------------------------------


def hints(rounds: int) -> dict[str, float]:
    """Beats of other replicas, 256 images each: their bytes, and what hearing them costs."""
    dice = random.Random(1)
    beats = [_beat(dice) for _ in range(rounds)]
    beliefs = Beliefs(1 << 20)
    began_s = time.process_time()
    for beat in beats:
        for backend, scope, images in read(beat):
            key = RouteKey(tuple(digest for digest, _ in images), (), tuple(each for _, each in images), scope=scope)
            beliefs.hear(BackendName(backend), key, Room())
    return {
        "images_per_beat": 256,
        "beat_bytes": len(beats[0]),
        "hearing_cpu_us_per_image": round(1e6 * (time.process_time() - began_s) / rounds / 256, 2),
    }


def _beat(dice: random.Random) -> bytes:
    told: dict[str, dict[str, dict[str, int]]] = {}
    for _ in range(256):
        backend = f"10.0.{dice.randrange(4)}.{dice.randrange(250)}:8000"
        told.setdefault(backend, {}).setdefault("0", {})[dice.randbytes(16).hex()] = 1024
    return json.dumps(told, separators=(",", ":")).encode()


def kv_events(rounds: int) -> dict[str, float]:
    """What it costs to follow one engine, by block."""
    index = BlockIndex(1 << 20, engine_names=True)
    dice = random.Random(2)
    payloads = [_stored(dice, 64) for _ in range(4 * rounds)]
    began_s = time.process_time()
    for payload in payloads:
        for event in read_batch(payload, with_tokens=False).events:
            index.apply(event)
    blocks = 64 * len(payloads)
    return {
        "cpu_us_per_block": round(1e6 * (time.process_time() - began_s) / blocks, 3),
        "bytes_per_block": round(index.byte_count / index.entries, 1),
    }


def _stored(dice: random.Random, blocks: int) -> bytes:
    event = {
        "type": "BlockStored", "block_hashes": [dice.getrandbits(63) for _ in range(blocks)],
        "parent_block_hash": None, "token_ids": [dice.randrange(150_000) for _ in range(16 * blocks)], "block_size": 16,
        "medium": "GPU", "lora_name": None, "extra_keys": [None] * blocks, "group_idx": 0,
        "kv_cache_spec_kind": "full_attention",
    }  # fmt: skip
    return msgspec.msgpack.encode([1000.0, [event], 0])
