from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ImageTooLarge
from gateway.media import worker
from gateway.media.codecs import available_backends
from gateway.media.crew import PoolCannotStart
from gateway.media.job import PreparedOutput
from gateway.media.pool import Pool
from gateway.media.process import WORKER_COMMAND
from gateway.media.settings import MIB, PoolSettings

pytestmark = pytest.mark.slow

PARENT = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from gateway.media.pool import Pool
    from gateway.media.settings import PoolSettings
    from gateway.media.shm import Slab

    async def main():
        settings = PoolSettings(workers=3, codec_backend="fake", output_bytes=1 << 20)
        pool = Pool(settings, Slab(1 << 20), command=tuple(sys.argv[1:]))
        await pool.start()
        pids = [worker.process.pid for worker in pool._crew.workers]
        os.kill(pids[0], signal.SIGSTOP)
        print(*pids, flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
    """
)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_no_worker_outlives_a_parent_that_was_killed(kit: Any, until: Any) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PARENT,
        *kit.worker_command,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[2])},
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    assert len(pids) == 3
    assert all(is_alive(pid) for pid in pids)
    parent.kill()
    await parent.wait()
    await until(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_worker_is_confined(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1, worker_memory_bytes=256 * MIB)
    pid = pool._crew.workers[0].process.pid
    limits = {line[:26].strip(): line[26:].split()[:2] for line in kit.proc(pid, "limits").decode().splitlines()}
    assert limits["Max data size"] == [str(256 * MIB)] * 2
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == limits["Max file size"] == ["0", "0"]
    assert kit.proc(pid, "oom_score_adj").strip() == b"800"
    assert os.getpriority(os.PRIO_PROCESS, pid) >= PoolSettings().worker_nice > 0
    assert os.sched_getscheduler(pid) == os.SCHED_BATCH
    assert kit.content_key not in kit.proc(pid, "cmdline")
    assert os.getsid(pid) == os.getsid(0), "it yields to its parent, not to the whole machine"
    assert os.getpgid(pid) == pid, "signals from a terminal are its parent's"


async def test_a_spare_yields_to_others_from_its_start(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, spare_workers=1)
    await until(lambda: len(pool._crew.workers) == 2 and all(worker.ready for worker in pool._crew.workers))
    for each in pool._crew.workers:
        assert os.getpriority(os.PRIO_PROCESS, each.process.pid) >= PoolSettings().worker_nice


async def test_real_codecs_say_who_they_are(kit: Any) -> None:
    for backend in available_backends():
        pool = Pool(PoolSettings(workers=1, codec_backend=backend), kit.slab, command=WORKER_COMMAND)
        await pool.start()
        assert backend.split("-", maxsplit=1)[0] in pool.fingerprint
        await pool.stop()
    pool = Pool(PoolSettings(workers=1, codec_backend="unheard-of"), kit.slab)
    with pytest.raises(PoolCannotStart, match="unheard-of"):
        await pool.start()


async def test_a_long_answer_does_not_stay_in_memory_for_ever(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1, output_bytes=32 * MIB)
    shared_kib = []
    for length in (1_000_000, 1):
        task = kit.task(kit.image(length=length), plan=kit.plan())
        output = await pool.run(task)
        task.source.close()
        assert isinstance(output, PreparedOutput)
        assert output.answer.file_byte_count == length * 9
        assert len(output.data_url) == len("data:image/png;base64,") + length * 12
        status = kit.proc(pool._crew.workers[0].process.pid, "status")
        shared_kib.append(int(status.partition(b"RssShmem:")[2].split()[0]))
    assert shared_kib[0] > 11_000
    assert shared_kib[1] < 1_000


async def test_an_answer_that_does_not_fit_is_an_image_too_large(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1, output_bytes=MIB)
    task = kit.task(kit.image(length=200_000), plan=kit.plan())
    with pytest.raises(ImageTooLarge, match="1800000"):
        await pool.run(task)
    task.source.close()


def test_the_loops_process_loads_no_image_library() -> None:
    script = "import sys, json, gateway.media.service, gateway.media.worker; print(json.dumps(list(sys.modules)))"
    root = str(Path(worker.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, env={**os.environ, "PYTHONPATH": root}
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"PIL", "pyvips", "simplejpeg", "imagecodecs", "numpy", "pillow_heif"}
