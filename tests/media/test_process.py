from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from gateway.media import process
from gateway.media.messages import Answer, Bytes, Examine, Examined, Ready
from gateway.media.process import WorkerProcess
from gateway.media.settings import MIB, PoolSettings

pytestmark = pytest.mark.slow


class Heard:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.nonsense = 0
        self.dead = False

    def answered(self, worker: WorkerProcess, answer: Answer) -> None:
        self.answers.append(answer)

    def talked_nonsense(self, worker: WorkerProcess) -> None:
        self.nonsense += 1

    def died(self, worker: WorkerProcess) -> None:
        self.dead = True


@pytest.fixture
async def heard() -> Heard:
    return Heard()


def descriptors() -> set[int]:
    """The open ones; the folder's own is closed again by the time they are looked at."""
    found = [int(each.name) for each in Path("/proc/self/fd").iterdir()]
    return {number for number in found if Path(f"/proc/self/fd/{number}").is_symlink()}


def spawn(kit: Any, heard: Heard, **settings: Any) -> WorkerProcess:
    chosen: dict[str, Any] = {"codec_backend": "fake", "output_bytes": MIB, **settings}
    return WorkerProcess(PoolSettings(**chosen), kit.slab, heard, kit.worker_command)


async def test_a_worker_gets_ready_answers_and_leaves_when_hung_up_on(kit: Any, heard: Heard, until: Any) -> None:
    worker = spawn(kit, heard)
    await until(lambda: heard.answers != [])
    assert isinstance(heard.answers[0], Ready)
    task = kit.task(kit.image())
    assert worker.ask(task.question)
    await until(lambda: len(heard.answers) == 2)
    assert isinstance(heard.answers[1], Examined)
    with pytest.raises(ValueError, match="beyond"):
        worker.output(MIB + 1)
    with pytest.raises(ValueError, match="beyond"):
        worker.output(0)
    worker.hang_up()
    await until(lambda: heard.dead)
    assert kit.proc(worker.pid, "stat") is None, "reaped, no zombie"
    task.source.close()


async def test_a_killed_worker_is_reaped_and_cannot_be_asked(kit: Any, heard: Heard, until: Any) -> None:
    worker = spawn(kit, heard)
    await until(lambda: heard.answers != [])
    worker.kill()
    await until(lambda: heard.dead)
    worker.kill()
    assert not worker.ask(Examine(Bytes(0, 1, is_text=True, has_escapes=False), b"k" * 32, 1, 1))
    assert kit.proc(worker.pid, "stat") is None


async def test_a_worker_that_cannot_be_had_leaves_nothing_behind(kit: Any, heard: Heard, until: Any) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # With every number below taken, the limit tells how many more there are.
    fillers = [os.open("/dev/null", os.O_RDONLY)]
    while fillers[-1] < max(descriptors()):
        fillers.append(os.open("/dev/null", os.O_RDONLY))
    before = descriptors()
    worker = None
    refusals = 0
    try:
        while worker is None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(before) + 1 + refusals, limits[1]))
            try:
                worker = spawn(kit, heard)
            except OSError:
                refusals += 1
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
                assert descriptors() == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for filler in fillers:
            os.close(filler)
    assert refusals > 3, "a start that failed at each of its steps"
    worker.kill()
    await until(lambda: heard.dead)


def test_a_worker_sees_nothing_of_the_gateways_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    environment = process._environment()
    assert "hunter2" not in environment.values()
    assert environment["VIPS_BLOCK_UNTRUSTED"] == "1"
    assert "glibc.malloc.hugetlb=1" in environment["GLIBC_TUNABLES"]
    assert environment["PYTHONPATH"].split(":") == [str(Path(process.__file__).parents[2]), "/elsewhere"]
    monkeypatch.delenv("PYTHONPATH")
    assert process._environment()["PYTHONPATH"] == str(Path(process.__file__).parents[2])


async def test_ready_while_the_loop_does_other_things(kit: Any, heard: Heard, until: Any) -> None:
    worker = spawn(kit, heard)
    turns = 0
    while not heard.answers:
        turns += 1
        await asyncio.sleep(0.001)
    assert turns > 1
    worker.kill()
    await until(lambda: heard.dead)
