"""Whether the pool scales: the CPU of one image where two workers are busy against that where one is.

Real services with the real codecs; each image is a 12-megapixel photograph that was never seen. Both services are asked
in turn, round by round, so that a busy machine is busy for both. Counted is the workers' own CPU and that of the loop.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import pybase64

from benchmarks.pictures import build
from benchmarks.timing import Options
from gateway.media.service import MediaService
from gateway.media.settings import MediaSettings, PoolSettings
from gateway.media.shm import SlabBody
from gateway.ports import MediaScope, PrepareJob, SourceRef
from gateway.types import (
    Change,
    ImagePlan,
    ImageTokens,
    LongString,
    OutputFormat,
    Size,
    Span,
    TenantId,
)

_PICTURE = "phone-12mp"
_ROUNDS = 15
_IMAGES = 4
_TARGET = Size(1312, 960)
_TOKENS = ImageTokens(1230, 0, 2, (1, 60, 82), 41, 1230)
_SCOPE = MediaScope(TenantId("t"), 50_000_000, 100_000_000, hosts=(), deadline_s=60.0)


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


@dataclass(slots=True)
class _Side:
    """One service, what its workers said they spent, and the samples per image."""

    service: MediaService
    worker_s: list[float]
    cpu_ms: list[float]
    wall_ms: list[float]


def run(options: Options) -> dict[str, object]:
    """``cpu_ratio_two_workers`` and ``wall_ratio_two_workers``, medians of one interleaved run."""
    one, two = asyncio.run(_measure(options.rounds or _ROUNDS))
    return {
        "cpu_ratio_two_workers": round(statistics.median(two.cpu_ms) / statistics.median(one.cpu_ms), 3),
        "wall_ratio_two_workers": round(statistics.median(two.wall_ms) / statistics.median(one.wall_ms), 3),
        "cpu_ms_per_image": {"one": statistics.median(one.cpu_ms), "two": statistics.median(two.cpu_ms)},
    }


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    names = ("cpu_ratio_two_workers", "wall_ratio_two_workers")
    return [f"{name:28} {report[name]:8}" for name in names]


async def _measure(rounds: int) -> tuple[_Side, _Side]:
    file = next(picture for picture in build() if picture.name == _PICTURE).path.read_bytes()
    one, two = await _started(1), await _started(2)
    for number in range(rounds + 1):
        for side in (one, two) if number % 2 else (two, one):
            await _round(side, file, number, counted=number > 0)
    for side in (one, two):
        await side.service.stop()
    return one, two


async def _started(workers: int) -> _Side:
    worker_s: list[float] = []
    settings = MediaSettings(b"k" * 32, 1, pool=PoolSettings(workers=workers))
    service = MediaService(settings, _NoWeb(), on_task=lambda facts: worker_s.append(facts.cpu_s))
    await service.start()
    return _Side(service, worker_s, [], [])


async def _round(side: _Side, file: bytes, number: int, *, counted: bool) -> None:
    texts = [_text(file, b"%d.%d" % (number, image)) for image in range(_IMAGES)]
    bodies = [_body(side.service, text) for text in texts]
    side.worker_s.clear()
    began_s, cpu_began_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_prepare(side.service, *body) for body in bodies))
    if counted:
        loop_s = time.process_time() - cpu_began_s
        side.wall_ms.append(1e3 * (time.perf_counter() - began_s) / _IMAGES)
        side.cpu_ms.append(1e3 * (loop_s + sum(side.worker_s)) / _IMAGES)
    for body, _ in bodies:
        body.close()


def _text(file: bytes, tail: bytes) -> bytes:
    """Bytes behind the end of a JPEG change nothing but its name."""
    return b"data:image/jpeg;base64," + pybase64.b64encode(file + tail)


def _body(service: MediaService, text: bytes) -> tuple[SlabBody, SourceRef]:
    extent = service.slab.take(len(text))
    assert extent is not None
    extent.view[:] = text
    body = SlabBody(extent, len(text))
    return body, SourceRef("image", LongString(Span(body.start, body.stop), has_escapes=False))


async def _prepare(service: MediaService, body: SlabBody, ref: SourceRef) -> None:
    looked = await service.look(body, [ref], _SCOPE)
    plan = ImagePlan(
        original=looked.facts[0].probe.upright,
        target=_TARGET,
        changes=(Change.RESIZED,),
        output=OutputFormat.AUTO,
        jpeg_quality=95,
        background=(255, 255, 255),
        version=service.plan_version,
        before=_TOKENS,
        after=_TOKENS,
    )
    await service.prepare(body, looked, [PrepareJob(ref, looked.facts[0], plan)], _SCOPE)
