"""A worker that was taken over, in a real box: what it tries fails, and the pool goes on."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ImageWorkerLost
from gateway.media.confine import Layer, probe
from gateway.media.job import PreparedOutput
from gateway.media.pool import Pool
from gateway.media.settings import MIB

pytestmark = pytest.mark.slow

# What a library may ask for is refused, and the worker works on.
REFUSED = {
    "environ-of-parent": "EPERM",
    "memory-of-parent": "EPERM",
    "own-descriptors": "EPERM",
    "signal-by-descriptor": "EPERM",
    "executable-memory": "EPERM",
    "shared-memory": "EPERM",
    "become-dumpable": "EPERM",
    "raise-limits": "EPERM",
    "terminal": "EPERM",
    "thread-by-clone3": "ENOSYS",
}
# What only an intruder asks for ends the worker.
ENDED = (
    "socket", "unix-socket", "connect", "exec", "fork", "signal-parent", "ptrace", "read-parent", "pidfd", "memfd",
    "mount", "keyctl", "bpf", "unshare", "io-uring", "userfaultfd", "setuid",
)  # fmt: skip


@pytest.fixture
def red_team(kit: Any, start_pool: Any) -> Any:
    """Start a pool of workers that are taken over."""
    root = str(Path(__file__).parents[2])
    path = str(Path(__file__).with_name("red_team_worker.py"))
    worker = f"import runpy, sys; sys.path.insert(0, {root!r}); runpy.run_path({path!r}, run_name='__main__')"
    kit.worker_command = (sys.executable, "-P", "-c", worker)

    async def start(**settings: Any) -> Pool:
        return await start_pool(sandbox="auto", **settings)  # type: ignore[no-any-return]

    return start


def secret_policy(folder: Path) -> Path:
    """A file that even nobody might read, if nothing but its mode were in the way."""
    folder.chmod(0o777)
    policy = folder / "tenant.yaml"
    policy.write_text("keys: [secret]")
    return policy


def found_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def attack(kit: Any, pool: Pool, name: str, **orders: Any) -> str:
    """What the attack brought the intruder."""
    task = kit.task(kit.image(attack=name, **orders), plan=kit.plan())
    try:
        output = await pool.run(task)
    finally:
        task.source.close()
    assert isinstance(output, PreparedOutput)
    return base64.b64decode(output.data_url.partition(b",")[2]).decode()


async def test_what_a_library_may_ask_for_is_refused_and_the_worker_works_on(kit: Any, red_team: Any) -> None:
    pool = await red_team(workers=1)
    pid = pool._crew.workers[0].process.pid
    assert {name: await attack(kit, pool, name) for name in REFUSED} == REFUSED
    assert (pool._crew.workers[0].process.pid, pool.facts().restarts) == (pid, {})


async def test_no_file_is_read_and_none_is_written(kit: Any, red_team: Any, tmp_path: Path) -> None:
    policy = secret_policy(tmp_path)
    pool = await red_team(workers=1)
    for path in (policy, "/etc/shadow", "/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/dev/null"):
        assert await attack(kit, pool, "open", path=str(path)) == "EPERM"
    for name in ("write", "link"):
        assert await attack(kit, pool, name, path=str(tmp_path / "new")) == "EPERM"
    assert await attack(kit, pool, "streams") == str(2 << 20)
    assert found_in(tmp_path) == [policy]


async def test_what_only_an_intruder_asks_for_ends_the_worker_and_the_pool_goes_on(kit: Any, red_team: Any) -> None:
    pool = await red_team(workers=2)
    ends = await asyncio.gather(*(attack(kit, pool, name) for name in ENDED), return_exceptions=True)
    assert {name: type(end) for name, end in zip(ENDED, ends, strict=True)} == dict.fromkeys(ENDED, ImageWorkerLost)
    assert pool.facts().restarts == {"forbidden": 2 * len(ENDED)}, "each is tried once more on a fresh worker"
    assert await attack(kit, pool, "none") == "done"
    assert kit.slab.in_use_bytes == 0


async def test_memory_ends_at_its_limit(kit: Any, red_team: Any) -> None:
    pool = await red_team(workers=1, worker_memory_bytes=256 * MIB)
    assert 64 < int(await attack(kit, pool, "allocate")) < 256
    assert pool.facts().restarts == {}


async def test_an_intruder_inherits_nothing(kit: Any, red_team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLMGW_IDENTITY_SECRET", "hunter2")
    secret_fd = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(secret_fd, True)
    try:
        pool = await red_team(workers=1)
        environment = json.loads(await attack(kit, pool, "environment"))
        assert "hunter2" not in environment.values()
        assert not any(name.startswith("VLMGW_") for name in environment)
        assert await attack(kit, pool, "descriptors") == "4", "channel, slab, output, its own memory's statistics"
    finally:
        os.close(secret_fd)


async def test_threads_end_with_their_worker(kit: Any, red_team: Any) -> None:
    pool = await red_team(workers=1)
    pid = pool._crew.workers[0].process.pid
    assert await attack(kit, pool, "threads") == "done"
    await pool.stop()
    assert kit.proc(pid, "stat") is None


async def test_a_worker_that_computes_without_a_job_is_replaced(kit: Any, red_team: Any, until: Any) -> None:
    pool = await red_team(workers=1)

    def spent_s() -> float:
        return pool._crew.workers[0].process.cpu_s() or 0.0

    for _ in range(3):
        pool.look_after_idle()
        assert await attack(kit, pool, "work") == "done"
    pool.look_after_idle()
    pool.look_after_idle()
    assert pool.facts().restarts == {}, "work is no offence, and a quiet worker is left alone"
    assert await attack(kit, pool, "spin") == "done"
    pool.look_after_idle()
    before_s = spent_s()
    await until(lambda: spent_s() > before_s + 0.3)
    pool.look_after_idle()
    await until(lambda: pool.facts().restarts == {"forbidden": 1} and pool.alive)
    assert await attack(kit, pool, "none") == "done"


async def test_the_pool_tells_which_walls_stand(kit: Any, red_team: Any) -> None:
    pool = await red_team(workers=1)
    assert pool.facts().box == probe("nobody")
    assert Layer.SECCOMP in pool.facts().box.active


async def test_without_a_box_an_intruder_would_get_far(kit: Any, start_pool: Any, red_team: Any) -> None:
    """The attacks are real: with the walls off they bring something."""
    pool = await start_pool(workers=1, sandbox="off")
    assert await attack(kit, pool, "open", path="/etc/passwd") == "done"
    assert await attack(kit, pool, "socket") == "done"
    assert await attack(kit, pool, "fork") == "done"
    assert await attack(kit, pool, "executable-memory") == "done"
