"""What a process must see to by itself where nothing around it does: closed standard streams, being process 1.

Decided here: that a closed standard stream is /dev/null (the next socket would get its number, and a client what a
library prints); that process 1, which the kernel keeps from signals nobody handles, can be ended before ``serve``
handles them; and that it waits for the orphans it gets. Not decided here: what ``serve`` does with signals.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection

_STREAMS = (0, 1, 2)


def stand() -> None:
    """Before anything else is opened."""
    for fd in _STREAMS:
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(fd, True)
    # Python has none of a stream that was closed when it started
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


def reap(own: Collection[int]) -> None:
    """Wait for children that have ended and are none of ``own``: the image workers of a process that was killed."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        os.waitpid(ended.si_pid, 0)
