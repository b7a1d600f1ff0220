"""What it costs to hand an image to a worker and to get the result back, pixels aside.

A codec that does nothing stands in for the pixels, so that what is left is ours: hashing on the loop, the messages,
base64 both ways, the digests, copying the result out. Measured in CPU-ms of the loop's process and of the worker, for
5 MB of data URL in and 0.4 MB out, against the floor of the same native steps called one after the other in one
process, interleaved.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pybase64

from gateway.media.digest import content_digest, lookup_digest, placement_digest
from gateway.media.service import MediaService
from gateway.media.settings import MediaSettings, PoolSettings
from gateway.media.shm import SlabBody
from gateway.media.worker import Rendered, run as run_worker
from gateway.ports import MediaScope, PrepareJob, SourceRef
from gateway.types import (
    Change,
    ImageFormat,
    ImagePlan,
    ImageTokens,
    LongString,
    OutputFormat,
    Probe,
    Size,
    Span,
    TenantId,
)

IN_BYTES = 3_750_000  # 5 MB as base64
OUT_BYTES = 300_000  # 0.4 MB as base64
ROUNDS = 40
KEY = b"k" * 32
_PREFIX = b"data:image/png;base64,"
_TOKENS = ImageTokens(64, 0, 2, (1, 8, 8), 8, 256)


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    format: ImageFormat
    size: Size


class IdleCodec:
    """Finds a photograph in anything and renders the same bytes always."""

    fingerprint = "idle"

    def __init__(self) -> None:
        self._file = _File(os.urandom(OUT_BYTES), ImageFormat.PNG, Size(1312, 960))

    def probe(self, data: bytes) -> Probe:
        return Probe(ImageFormat.PNG, Size(4032, 3024))

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered:
        return self._file


class _NoWeb:
    async def fetch(self, url: str, *, hosts: tuple[str, ...] | None, max_bytes: int, deadline_s: float) -> bytes:
        raise AssertionError("nothing here is remote")


def _plan() -> ImagePlan:
    size = Size(4032, 3024)
    changes = (Change.RESIZED,)
    return ImagePlan(size, Size(1312, 960), changes, OutputFormat.AUTO, 95, (255, 255, 255), "idle", _TOKENS, _TOKENS)


def _floor_ms(text: bytes, rendered: bytes) -> float:
    """The same native steps without a process in between: two decodings, three digests, one encoding, two copies."""
    began = time.process_time()
    lookup_digest(text, seed=1, scope="t")
    data = pybase64.b64decode(memoryview(text)[len(_PREFIX) :], validate=True)
    placement_digest(data)
    content_digest(data, key=KEY)
    pybase64.b64decode(memoryview(text)[len(_PREFIX) :], validate=True)
    bytes(memoryview(bytearray(pybase64.b64encode(rendered))))
    return (time.process_time() - began) * 1e3


async def _measure() -> dict[str, float]:
    worker_s: list[float] = []
    command = (sys.executable, "-P", str(Path(__file__).resolve()))
    settings = MediaSettings(KEY, 1, pool=PoolSettings(workers=1, codec_backend="idle"))
    service = MediaService(settings, _NoWeb(), on_task=lambda facts: worker_s.append(facts.cpu_s), command=command)
    await service.start()
    scope = MediaScope(TenantId("t"), 50_000_000, 100_000_000, hosts=(), deadline_s=30.0)
    rendered = os.urandom(OUT_BYTES)
    loop_ms, child_ms, wall_ms, floor_ms, known_ms = [], [], [], [], []
    for _ in range(ROUNDS):
        text = _PREFIX + pybase64.b64encode(os.urandom(IN_BYTES))
        floor_ms.append(_floor_ms(text, rendered))
        extent = service.slab.take(len(text))
        assert extent is not None
        extent.view[:] = text
        body = SlabBody(extent, len(text))
        ref = SourceRef("image", LongString(Span(body.start, body.stop), has_escapes=False))
        worker_s.clear()
        began_cpu, began = time.process_time(), time.perf_counter()
        looked = await service.look(body, [ref], scope)
        await service.prepare(body, looked, [PrepareJob(ref, looked.facts[0], _plan())], scope)
        loop_ms.append((time.process_time() - began_cpu) * 1e3)
        wall_ms.append((time.perf_counter() - began) * 1e3)
        child_ms.append(sum(worker_s) * 1e3)
        began_cpu = time.process_time()
        looked = await service.look(body, [ref], scope)
        await service.prepare(body, looked, [PrepareJob(ref, looked.facts[0], _plan())], scope)
        known_ms.append((time.process_time() - began_cpu) * 1e3)
        body.close()
    await service.stop()
    megabytes = (IN_BYTES + OUT_BYTES) * 4 / 3 / 1e6
    total_ms = statistics.median(loop_ms) + statistics.median(child_ms)
    floor = statistics.median(floor_ms)
    return {
        "loop_cpu_ms": statistics.median(loop_ms),
        "worker_cpu_ms": statistics.median(child_ms),
        "wall_ms": statistics.median(wall_ms),
        "native_floor_cpu_ms": floor,
        "ratio_to_native": total_ms / floor,
        "overhead_cpu_ms_per_mb": (total_ms - floor) / megabytes,
        "known_image_cpu_ms": statistics.median(known_ms),
    }


def run() -> dict[str, dict[str, float]]:
    """Medians of one interleaved run: 5 MB in, 0.4 MB out through one worker."""
    return {"handover": asyncio.run(_measure())}


if __name__ == "__main__":
    sys.exit(run_worker(sys.argv[1], lambda name: IdleCodec()))
