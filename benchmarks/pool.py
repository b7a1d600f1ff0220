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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pybase64

from benchmarks import two_workers
from benchmarks.timing import Options, machine_facts
from gateway.media.digest import content_digest, lookup_digest, placement_digest
from gateway.media.service import MediaService
from gateway.media.settings import MediaSettings, PoolSettings
from gateway.media.shm import SlabBody
from gateway.media.worker import Rendered
from gateway.media.worker import run as run_worker
from gateway.ports import Accepts, MediaScope, PrepareJob, SourceRef
from gateway.types import (
    Change,
    Detail,
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

_IN_BYTES = 3_750_000  # 5 MB as base64
_OUT_BYTES = 300_000  # 0.4 MB as base64
_ROUNDS = 40
_KEY = b"k" * 32
_PREFIX = b"data:image/png;base64,"
_SOURCE, _TARGET = Size(4032, 3024), Size(1312, 960)
_TOKENS = ImageTokens(64, 0, 2, (1, 8, 8), 8, 256)
_PLAN = ImagePlan(
    _SOURCE, _TARGET, (Change.RESIZED,), OutputFormat.AUTO, 95, (255, 255, 255), "idle", before=_TOKENS, after=_TOKENS
)
_SCOPE = MediaScope(TenantId("t"), 50_000_000, 100_000_000, hosts=(), deadline_s=30.0)
_COMMAND = (sys.executable, "-P", str(Path(__file__).resolve()))


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    format: ImageFormat
    size: Size


class _IdleCodec:
    """Finds a photograph in anything and renders the same bytes always."""

    fingerprint = "idle"

    def __init__(self) -> None:
        self._file = _File(os.urandom(_OUT_BYTES), ImageFormat.PNG, _TARGET)

    def probe(self, _: bytes, _accepts: Accepts, /) -> Probe:
        return Probe(ImageFormat.PNG, _SOURCE)

    def measure(self, _data: bytes, _probe: Probe, _sizes: Sequence[Size], /) -> tuple[Detail, tuple[float, ...]]:
        return Detail(_SOURCE.pixels, (), 0), ()

    def render(self, _data: bytes, _probe: Probe, _plan: ImagePlan, /) -> Rendered:
        return self._file


class _NoWeb:
    async def fetch(
        self,
        url: str,
        *,
        tenant: str,
        hosts: tuple[str, ...] | None,
        max_bytes: int,
        deadline_s: float,
        take: Callable[[int], None],
    ) -> bytes:
        raise AssertionError(f"nothing here is remote: {url} {tenant} {hosts} {max_bytes} {deadline_s} {take}")


def run(options: Options) -> dict[str, object]:
    """Medians of interleaved runs: 5 MB in, 0.4 MB out through one worker; photographs through one and through two."""
    handover = asyncio.run(_measure(options.rounds or _ROUNDS))
    return {"machine": machine_facts(), "handover": handover, **two_workers.run(options)}


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    handover = report["handover"]
    assert isinstance(handover, dict)
    lines = [f"{name:28} {value:8.3f}" for name, value in handover.items()]
    return [*lines, *two_workers.table(report)]


async def _measure(rounds: int) -> dict[str, float]:
    worker_s: list[float] = []
    settings = MediaSettings(_KEY, 1, pool=PoolSettings(workers=1, codec_backend="idle"))
    service = MediaService(settings, _NoWeb(), on_task=lambda facts: worker_s.append(facts.cpu_s), command=_COMMAND)
    await service.start()
    rendered = os.urandom(_OUT_BYTES)
    samples: dict[str, list[float]] = {name: [] for name in ("loop", "worker", "floor", "known", "wall", "hash")}
    for _ in range(rounds):
        text = _PREFIX + pybase64.b64encode(os.urandom(_IN_BYTES))
        samples["floor"].append(_cpu_ms(partial(_native_steps, text, rendered)))
        samples["hash"].append(_cpu_ms(partial(lookup_digest, text, seed=1, scope="t")))
        body, ref = _body(service, text)
        worker_s.clear()
        began_s = time.perf_counter()
        samples["loop"].append(await _work(service, body, ref))
        samples["wall"].append(1e3 * (time.perf_counter() - began_s))
        samples["worker"].append(1e3 * sum(worker_s))
        samples["known"].append(await _work(service, body, ref))
        body.close()
    await service.stop()
    loop, worker, floor, known, wall, hashing = (statistics.median(taken) for taken in samples.values())
    megabytes = (_IN_BYTES + _OUT_BYTES) * 4 / 3 / 1e6
    return {
        "loop_cpu_ms": loop,
        "loop_handover_cpu_ms": loop - hashing,
        "worker_cpu_ms": worker,
        "native_cpu_ms": floor,
        "overhead_cpu_ms_per_mb": (loop + worker - floor) / megabytes,
        "known_image_cpu_ms": known,
        "wall_ms": wall,
    }


def _body(service: MediaService, text: bytes) -> tuple[SlabBody, SourceRef]:
    extent = service.slab.take(len(text))
    assert extent is not None
    extent.view[:] = text
    body = SlabBody(extent, len(text))
    return body, SourceRef("image", LongString(Span(body.start, body.stop), has_escapes=False))


async def _work(service: MediaService, body: SlabBody, ref: SourceRef) -> float:
    """Look at one image and have it prepared; CPU-ms of this process."""
    began_s = time.process_time()
    looked = await service.look(body, [ref], _SCOPE)
    await service.prepare(body, looked, [PrepareJob(ref, looked.facts[0], _PLAN)], _SCOPE)
    return 1e3 * (time.process_time() - began_s)


def _cpu_ms(steps: Callable[[], object]) -> float:
    began_s = time.process_time()
    steps()
    return 1e3 * (time.process_time() - began_s)


def _native_steps(text: bytes, rendered: bytes) -> bytes:
    """What the two jobs ask of native code, in one process: two decodings, three digests, one encoding, one copy."""
    lookup_digest(text, seed=1, scope="t")
    payload = memoryview(text)[len(_PREFIX) :]
    data = pybase64.b64decode(payload, validate=True)
    placement_digest(data)
    content_digest(data, key=_KEY)
    pybase64.b64decode(payload, validate=True)
    return bytes(memoryview(bytearray(pybase64.b64encode(rendered))))


if __name__ == "__main__":
    sys.exit(run_worker(sys.argv[1], lambda _: _IdleCodec(), lambda: None))
