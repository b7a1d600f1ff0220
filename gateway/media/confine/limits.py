"""What the kernel counts for a worker: memory, files, processes, and whose life it depends on.

Decided here: ``limit`` is for the time while libraries load, ``settle`` for the time after. Limits only go down, soft
and hard alike.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from pathlib import Path

from gateway.media.confine.kernel import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

_MIB = 1024 * 1024
# Open files while libraries load: standard streams, channel, slab, output, statm, and what an import opens.
_MAX_FILES = 64
# What ``settle`` does, in a few words.
SETTLED = "no new descriptors, no bytes into files"
# Tasks of one user: all threads of all workers, and whatever else runs as nobody.
_MAX_TASKS = 1024


def limit(memory_bytes: int, shared_bytes: int) -> None:
    """Bound memory, core dumps and files, before anything else is loaded.

    Private memory is limited by RLIMIT_DATA (Linux counts private writable mappings there since 4.7) and, for kernels
    that do not, by RLIMIT_AS with room for the shared mappings and libraries.
    """
    _lower(resource.RLIMIT_DATA, memory_bytes)
    _lower(resource.RLIMIT_AS, memory_bytes + shared_bytes + 1024 * _MIB)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, _MAX_FILES)
    # When memory runs out, the kernel should take an image worker and not the process that holds every connection.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


def follow(parent_pid: int) -> None:
    """End with the parent, ignore what supervisors send to whole groups, leave no core dump of users' images, even by
    pipe. To be repeated after any change of user, which undoes the first and the last."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent died before the line above
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    prctl(PR_SET_DUMPABLE, 0)


def settle(*, own_user: bool) -> str:
    """After the last import: no new descriptor of any kind, no byte into any file; what it does.

    ``own_user``: the user is the workers' own, so that their threads can be counted.
    """
    _lower(resource.RLIMIT_NOFILE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_MSGQUEUE, 0)
    if own_user:
        _lower(resource.RLIMIT_NPROC, _MAX_TASKS)
    return SETTLED


def _lower(which: int, value: int) -> None:
    """Lower a limit, soft and hard; never above what the parent already lives under."""
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))
