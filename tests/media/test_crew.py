from __future__ import annotations

import os
import resource
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayBug
from gateway.media.crew import Crew, PoolCannotStart, Reason, Worker
from gateway.media.messages import Report
from gateway.media.settings import MIB, PoolSettings

pytestmark = pytest.mark.slow


class Employer:
    def __init__(self) -> None:
        self.losses: list[str] = []

    def reported(self, worker: Worker, answer: Report) -> None: ...

    def lost(self, worker: Worker, reason: Reason) -> None:
        self.losses.append(reason)

    def changed(self) -> None: ...


def crew_of(kit: Any, employer: Employer, command: tuple[str, ...] | None = None, **settings: Any) -> Crew:
    chosen: dict[str, Any] = {"workers": 2, "codec_backend": "fake", "output_bytes": MIB, **settings}
    return Crew(PoolSettings(**chosen), kit.slab, command or kit.worker_command, employer)


async def test_a_crew_starts_is_whole_again_after_a_loss_and_stops(kit: Any, until: Any) -> None:
    employer = Employer()
    crew = crew_of(kit, employer)
    with pytest.raises(GatewayBug):
        _ = crew.fingerprint
    await crew.start()
    assert crew.fingerprint == "fake-1"
    os.kill(crew.workers[0].process.pid, signal.SIGKILL)
    await until(lambda: crew.restarts["crash"] == 1 and sum(worker.ready for worker in crew.workers) == 2)
    await crew.stop()
    assert employer.losses == ["crash", "stop", "stop"]
    assert (crew.workers, crew.alive) == ((), False)


async def test_spares_stand_beside_those_at_work_and_take_the_place_of_a_lost_one(kit: Any, until: Any) -> None:
    crew = crew_of(kit, Employer(), workers=1, spare_workers=1)
    await crew.start()
    await until(lambda: sum(worker.ready for worker in crew.workers) == 2)
    at_work, spare = crew.workers
    assert crew.free_worker() is at_work
    crew.end(at_work, "crash")
    await until(lambda: at_work not in crew.workers)
    assert crew.free_worker() is spare
    await until(lambda: sum(worker.ready for worker in crew.workers) == 2)
    assert crew.free_worker() is spare, "the newest one is the spare"
    await crew.stop()


async def test_a_codec_that_is_not_there_refuses_the_start_with_its_reason(kit: Any) -> None:
    crew = crew_of(kit, Employer(), codec_backend="unheard-of")
    with pytest.raises(PoolCannotStart, match="no codec unheard-of"):
        await crew.start()
    assert crew.workers == ()


async def test_workers_that_never_get_ready_refuse_the_start(kit: Any) -> None:
    crew = crew_of(kit, Employer(), command=("/bin/sleep", "60", "#"), start_deadline_s=0.2)
    with pytest.raises(PoolCannotStart, match="no worker answered in time"):
        await crew.start()


async def test_a_worker_with_other_codecs_is_not_taken(kit: Any, until: Any, tmp_path: Path) -> None:
    crew = crew_of(kit, Employer(), workers=1)
    await crew.start()
    crew._fingerprint = "fake-0"
    os.kill(crew.workers[0].process.pid, signal.SIGKILL)
    await until(lambda: crew.restarts["start"] >= 1)
    assert not crew.alive
    crew._fingerprint = "fake-1"
    await until(lambda: crew.alive)
    await crew.stop()


async def test_a_start_without_descriptors_is_repeated(kit: Any, until: Any) -> None:
    crew = crew_of(kit, Employer())
    await crew.start()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        for worker in crew.workers:
            os.kill(worker.process.pid, signal.SIGKILL)
        await until(lambda: crew.restarts["start"] >= 2)
        assert not crew.alive
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    await until(lambda: sum(worker.ready for worker in crew.workers) == 2)
    await crew.stop()


async def test_failed_starts_are_repeated_with_pauses(kit: Any, until: Any, tmp_path: Path) -> None:
    switch = tmp_path / "broken"
    script = tmp_path / "worker.sh"
    script.write_text(f'#!/bin/sh\n[ -e {switch} ] && exit 1\nexec {" ".join(kit.worker_command)} "$1"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert sys.executable in kit.worker_command
    crew = crew_of(kit, Employer(), command=(str(script),), workers=1)
    await crew.start()
    switch.touch()
    os.kill(crew.workers[0].process.pid, signal.SIGKILL)
    await until(lambda: crew.restarts["start"] >= 1 and crew._restart is not None)
    switch.unlink()
    await until(lambda: crew.alive)
    assert crew._start_failures == 0
    await crew.stop()
