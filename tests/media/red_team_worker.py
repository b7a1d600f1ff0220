"""An image worker that was taken over: its codec does what an intruder would, and tells how far it got.

The file is a JSON object of orders: ``{"attack": name, "path": …}``. What the attack brought comes back as the rendered
file: ``"done"`` or the errno. Raw system calls, because an intruder does not ask Python.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from gateway.errors import Undecodable
from gateway.media.worker import run
from gateway.ports import Accepts
from gateway.types import Detail, ImageFormat, ImagePlan, Probe, Size
from tests.media.fake_worker import FakeRendered

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# Numbers on x86_64 and on aarch64, independent of the filter's own table.
CALLS = {
    name: numbers[platform.machine() == "aarch64"]
    for name, numbers in {
        "socket": (41, 198), "execve": (59, 221), "ptrace": (101, 117), "process_vm_readv": (310, 270),
        "memfd_create": (319, 279), "mount": (165, 40), "keyctl": (250, 219), "bpf": (321, 280), "unshare": (272, 97),
        "io_uring_setup": (425, 425), "pidfd_open": (434, 434), "setuid": (105, 146), "openat": (257, 56),
        "mprotect": (10, 226), "mmap": (9, 222), "fcntl": (72, 25), "userfaultfd": (323, 282),
        "clone3": (435, 435), "prctl": (157, 167), "ioctl": (16, 29), "connect": (42, 203), "linkat": (265, 37),
    }.items()
}  # fmt: skip


def call(name: str, *args: Any) -> str:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    result = libc.syscall(ctypes.c_long(CALLS[name]), *words)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def page(*, executable: bool = False, shared: bool = False, byte_count: int = 4096) -> str:
    protection = 0b111 if executable else 0b011
    return call("mmap", 0, byte_count, protection, 0x21 if shared else 0x22, -1, 0)


def channel_fd() -> int:
    return int(json.loads(sys.argv[1])["channel_fd"])


def open_file(orders: dict[str, Any]) -> str:
    return call("openat", -100, str(orders["path"]).encode(), os.O_RDONLY, 0)


def write_file(orders: dict[str, Any]) -> str:
    return call("openat", -100, str(orders["path"]).encode(), os.O_WRONLY | os.O_CREAT, 0o600)


def of_parent(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda orders: open_file({"path": f"/proc/{os.getppid()}/{name}"})


def signal_parent(orders: dict[str, Any]) -> str:
    os.kill(os.getppid(), 18)  # SIGCONT: would harm nobody if it got through
    return "done"


def signal_by_descriptor(orders: dict[str, Any]) -> str:
    """Have the kernel send a signal to the parent when something arrives on the channel."""
    return call("fcntl", channel_fd(), 8, os.getppid())


def fork(orders: dict[str, Any]) -> str:
    if os.fork() == 0:
        os._exit(0)
    return "done"


def run_program(orders: dict[str, Any]) -> str:
    return call("execve", b"/bin/true", 0, 0)


def allocate(orders: dict[str, Any]) -> str:
    """Private memory until there is no more: MiB had."""
    kept: list[mmap.mmap] = []
    with_mib = 0
    try:
        while with_mib < 4096:
            kept.append(mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            with_mib += 16
    except OSError:
        pass
    return str(with_mib)


def threads(orders: dict[str, Any]) -> str:
    """Threads are what decoders need; they go with their process."""
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(3_600,), daemon=True).start()
    return "done"


def work_hard(orders: dict[str, Any]) -> str:
    until_s = time.process_time() + 0.3
    while time.process_time() < until_s:
        pass
    return "done"


def spin_when_idle(orders: dict[str, Any]) -> str:
    def spin() -> None:
        while True:
            pass

    threading.Thread(target=spin, daemon=True).start()
    return "done"


def raise_limits(orders: dict[str, Any]) -> str:
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))
    except (OSError, ValueError) as error:
        return errno.errorcode[error.errno or 0] if isinstance(error, OSError) else "EPERM"
    return "done"


def descriptors(orders: dict[str, Any]) -> str:
    """What is open: number and kind, but for the null device."""
    null = os.fstat(0).st_rdev
    found = []
    for number in range(3, 4096):
        try:
            state = os.fstat(number)
        except OSError:
            continue
        if state.st_rdev != null:
            found.append(f"{number}:{state.st_mode >> 12:o}")
    return f"{len(found)}"


def environment(orders: dict[str, Any]) -> str:
    return json.dumps(dict(os.environ))


def write_standard_streams(orders: dict[str, Any]) -> str:
    """A megabyte into each: it must end nowhere."""
    return str(sum(os.write(number, b"x" * (1 << 20)) for number in (1, 2)))


ATTACKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "open": open_file,
    "write": write_file,
    "environ-of-parent": of_parent("environ"),
    "memory-of-parent": of_parent("mem"),
    "link": lambda orders: call("linkat", -100, b"/etc/passwd", -100, str(orders["path"]).encode(), 0),
    "signal-by-descriptor": signal_by_descriptor,
    "executable-memory": lambda orders: page(executable=True),
    "shared-memory": lambda orders: page(shared=True, byte_count=1 << 30),
    "become-dumpable": lambda orders: call("prctl", 4, 1, 0, 0, 0),
    "raise-limits": raise_limits,
    "own-descriptors": lambda orders: open_file({"path": "/proc/self/fd"}),
    "terminal": lambda orders: call("ioctl", 1, 0x5412, b"x"),
    "thread-by-clone3": lambda orders: call("clone3", 0, 0),
    "socket": lambda orders: call("socket", 2, 1, 0),
    "unix-socket": lambda orders: call("socket", 1, 1, 0),
    "connect": lambda orders: call("connect", channel_fd(), bytes((2, 0, 0, 80, 127, 0, 0, 1)) + bytes(8), 16),
    "exec": run_program,
    "fork": fork,
    "signal-parent": signal_parent,
    "ptrace": lambda orders: call("ptrace", 16, os.getppid(), 0, 0),
    "read-parent": lambda orders: call("process_vm_readv", os.getppid(), 0, 0, 0, 0, 0),
    "pidfd": lambda orders: call("pidfd_open", os.getppid(), 0),
    "memfd": lambda orders: call("memfd_create", b"x", 0),
    "mount": lambda orders: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
    "keyctl": lambda orders: call("keyctl", 0, 0, 0),
    "bpf": lambda orders: call("bpf", 0, 0, 0),
    "unshare": lambda orders: call("unshare", 0x1000_0000),
    "io-uring": lambda orders: call("io_uring_setup", 1, 0),
    "userfaultfd": lambda orders: call("userfaultfd", 1),
    "setuid": lambda orders: call("setuid", 0),
    "allocate": allocate,
    "threads": threads,
    "work": work_hard,
    "spin": spin_when_idle,
    "descriptors": descriptors,
    "environment": environment,
    "streams": write_standard_streams,
    "none": lambda orders: "done",
}


class TakenOver:
    fingerprint = "red-team"

    def probe(self, data: bytes, accepts: Accepts) -> Probe:
        return Probe(ImageFormat.PNG, Size(64, 48))

    def measure(self, data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]:
        raise Undecodable("Nobody asks for the detail.")

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> FakeRendered:
        try:
            orders: dict[str, Any] = json.loads(data)
        except ValueError as error:
            raise Undecodable("The file holds no orders.") from error
        return FakeRendered(ATTACKS[orders["attack"]](orders).encode(), ImageFormat.PNG, plan.target)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], lambda name: TakenOver(), lambda: None))
