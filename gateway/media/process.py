"""One image worker as the loop's process sees it: spawned, asked, answered, reaped.

Decided here: how a worker is started and how its messages and its death reach the loop (its channel and a pidfd, both
watched by the loop; nothing here blocks or polls). Not decided here: what to ask and what a death means (``pool``).
A death is reported only after the process is reaped: then nobody reads its extent any more and no zombie is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

import gateway
from gateway.media.messages import MAX_MESSAGE_BYTES, Answer, Question, WorkerSetup, decode_answer, encode
from gateway.media.settings import PoolSettings
from gateway.media.shm import Slab, sealed_memfd

# Keeping freed memory instead of giving it back and faulting it in again: -10 to -43 % CPU per image (glibc 2.36).
_GLIBC_TUNABLES = ":".join(
    (
        "glibc.malloc.hugetlb=1",
        "glibc.malloc.mmap_threshold=1073741824",
        "glibc.malloc.trim_threshold=4294967296",
        "glibc.malloc.top_pad=67108864",
    )
)
_ENVIRONMENT = {
    "GLIBC_TUNABLES": _GLIBC_TUNABLES,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    "VIPS_BLOCK_UNTRUSTED": "1",
    "VIPS_WARNING": "0",  # its presence alone silences warnings about every odd image
}
# Everything else of the gateway's environment stays here: it may hold keys, and workers read hostile bytes.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR", "COVERAGE_PROCESS_START")

WORKER_COMMAND = (sys.executable, "-P", "-m", "gateway.media.worker")


class Listener(Protocol):
    """Who hears of a worker. Called from the loop, never from within a call of the listener's own."""

    def answered(self, worker: WorkerProcess, answer: Answer) -> None: ...
    def talked_nonsense(self, worker: WorkerProcess) -> None: ...
    def died(self, worker: WorkerProcess) -> None: ...


class WorkerProcess:
    """A running worker. Spawning takes about 2 ms of the loop; the worker reports Ready some 300 ms later.

    Raises OSError when the system has no descriptor, memory or process left for one; nothing of it stays then.
    """

    def __init__(
        self, settings: PoolSettings, slab: Slab, listener: Listener, command: Sequence[str], *, hurried: bool = True
    ) -> None:
        """``hurried``: somebody may be waiting for it, so it yields to others only once it is ready."""
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        # What is theirs is closed here in any case, what is ours only if the worker cannot be had.
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            self._channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.callback(channel.close)
            ours.callback(self._channel.close)
            output_fd = sealed_memfd("vlmgw-output", settings.output_bytes)
            theirs.callback(os.close, output_fd)
            self._output = mmap.mmap(output_fd, settings.output_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
            ours.callback(self._output.close)
            setup = WorkerSetup(
                channel_fd=channel.fileno(),
                slab_fd=slab.read_only_fd,
                slab_bytes=slab.byte_count,
                output_fd=output_fd,
                output_bytes=settings.output_bytes,
                parent_pid=os.getpid(),
                codec_backend=settings.codec_backend,
                memory_bytes=settings.worker_memory_bytes,
                nice=settings.worker_nice,
                hurried=hurried,
                sandbox=settings.sandbox,
                sandbox_user=settings.sandbox_user,
            )
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, msgspec.json.encode(setup).decode()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(channel.fileno(), slab.read_only_fd, output_fd),
                env=_environment(),
                # Not a session of its own: see ``priority``. Signals from a terminal go to groups.
                process_group=0,
            )
            ours.callback(self._process.wait)
            ours.callback(self._process.kill)
            self._pidfd = os.pidfd_open(self._process.pid)
            ours.pop_all()
        self.pid = self._process.pid
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel.fileno(), self._readable)
        self._loop.add_reader(self._pidfd, self._exited)

    @property
    def broke_out(self) -> bool:
        """Whether the system call filter ended it: it asked for what only an intruder asks for."""
        return self._process.returncode == -signal.SIGSYS

    def cpu_s(self) -> float | None:
        """CPU seconds it has used, all threads; ``None`` when it is gone."""
        try:
            # The kernel's name for a process's clock, as clock_getcpuclockid(3) makes it.
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return None

    def ask(self, question: Question) -> bool:
        """Send a question; ``False`` if the worker cannot be told (it is dead or does not read)."""
        try:
            self._channel.send(encode(question))
        except OSError:
            return False
        return True

    def output(self, length: int) -> bytes:
        """A copy of the first bytes of the worker's output region. Raises ValueError for a length beyond it."""
        if not 0 < length <= len(self._output):
            raise ValueError("an answer beyond the output region")
        return self._output[:length]

    def hang_up(self) -> None:
        """Let the worker leave by itself: it ends when its channel does."""
        self._close_channel()

    def kill(self) -> None:
        """End the worker now; ``died`` follows when it is reaped."""
        self._process.send_signal(signal.SIGKILL)

    def _readable(self) -> None:
        try:
            data = self._channel.recv(MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # the worker's end is closed: its death is reported through the pidfd
            self._close_channel()
            return
        try:
            answer = decode_answer(data)
        except msgspec.MsgspecError:
            self._listener.talked_nonsense(self)
            return
        self._listener.answered(self, answer)

    def _exited(self) -> None:
        if self._process.poll() is None:
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._close_channel()
        self._output.close()
        self._listener.died(self)

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel.fileno())
            self._channel.close()


def _environment() -> dict[str, str]:
    passed = {name: value for name in _PASSED_ON if (value := os.environ.get(name)) is not None}
    package_root = str(Path(gateway.__file__).resolve().parent.parent)
    with contextlib.suppress(KeyError):
        package_root = os.pathsep.join((package_root, os.environ["PYTHONPATH"]))
    return {**passed, **_ENVIRONMENT, "PYTHONPATH": package_root}
