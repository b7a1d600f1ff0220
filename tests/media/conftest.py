"""Real worker processes with a codec that obeys orders, a slab that must be empty in the end, and images to send."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.media.job import Task, TaskFacts
from gateway.media.messages import Bytes, Examine, Prepare
from gateway.media.pool import Pool
from gateway.media.settings import MIB, PoolSettings
from gateway.media.shm import Slab
from gateway.types import Change, ImageFormat, ImagePlan, ImageTokens, OutputFormat, Probe, Size

TARGET = Size(32, 32)
TOKENS = ImageTokens(64, 0, 2, (1, 8, 8), 8, 256)


@dataclass
class Kit:
    """What a test of the pool needs: a slab, tasks that lie in it, and what the pool reported of them."""

    slab: Slab
    reported: list[TaskFacts] = field(default_factory=list)
    worker_command: tuple[str, ...] = (sys.executable, "-P", str(Path(__file__).with_name("fake_worker.py")))
    flows: Iterator[int] = field(default_factory=itertools.count)
    content_key: bytes = b"k" * 32

    @staticmethod
    def image(**orders: Any) -> bytes:
        """A data URL whose file is a list of orders for the fake codec."""
        return b"data:image/png;base64," + base64.b64encode(json.dumps(orders).encode())

    @staticmethod
    def plan(*changes: Change, target: Size = TARGET) -> ImagePlan:
        return ImagePlan(
            original=Size(64, 48),
            target=target,
            changes=changes or (Change.RESIZED,),
            output=OutputFormat.AUTO,
            jpeg_quality=95,
            background=(255, 255, 255),
            version="fake-1",
            before=TOKENS,
            after=TOKENS,
        )

    @staticmethod
    def proc(pid: int, name: str) -> bytes | None:
        """A file that the system keeps about a process; ``None`` when the process is gone, zombies included."""
        path = Path(f"/proc/{pid}/{name}")
        return path.read_bytes() if path.exists() else None

    def task(
        self, text: bytes, *, plan: ImagePlan | None = None, tenant: str = "t", patience_s: float = 30.0, flow: int = -1
    ) -> Task:
        """A task over a copy of ``text``, which whoever runs it lets go (``task.source.close()``)."""
        extent = self.slab.take(len(text))
        assert extent is not None
        extent.view[:] = text
        where = Bytes(extent.offset, len(text), is_text=True, has_escapes=False)
        if plan is None:
            question: Examine | Prepare = Examine(where, self.content_key, 64 * MIB, 100_000_000)
        else:
            question = Prepare(where, plan, Probe(ImageFormat.PNG, Size(64, 48)), 64 * MIB, wants_sha256=True)
        hold = extent.hold()
        extent.close()
        return Task(question, hold, tenant, flow if flow >= 0 else next(self.flows), patience_s, text)


@pytest.fixture
def kit() -> Iterator[Kit]:
    slab = Slab(64 * MIB)
    yield Kit(slab)
    slab.close()


StartPool = Callable[..., Awaitable[Pool]]


@pytest.fixture
async def start_pool(kit: Kit) -> AsyncIterator[StartPool]:
    """Start a pool with these settings; at the end it is stopped and no process is left."""
    pools: list[Pool] = []

    async def start(**settings: Any) -> Pool:
        chosen: dict[str, Any] = {"workers": 2, "codec_backend": "fake", "output_bytes": 8 * MIB, **settings}
        pool = Pool(PoolSettings(**chosen), kit.slab, on_task=kit.reported.append, command=kit.worker_command)
        pools.append(pool)
        await pool.start()
        return pool

    yield start
    for pool in pools:
        await pool.stop()
        assert pool.facts().workers == 0


Until = Callable[[Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def until() -> Until:
    """Wait for a condition by looking at it, for at most 30 seconds."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - the condition lies in other processes
                await asyncio.sleep(0.005)

    return wait
