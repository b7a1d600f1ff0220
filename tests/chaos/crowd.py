"""Many idle clients: ``python -m tests.chaos.crowd PORT COUNT`` connects so often, says so, and stays until its input
ends.

They come from several loopback addresses, as a crowd would, so that no single one runs out of ports. Connections that
are refused or break are tried again a few times; how many stand in the end is printed. At the end of the input it
prints how many were still open.
"""

from __future__ import annotations

import resource
import socket
import sys
from contextlib import suppress

_PER_ADDRESS = 2_500
_TRIES = 20


def main(port: int, count: int) -> None:
    """Connect, tell, wait, look, leave."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held: list[socket.socket] = []
    tries = _TRIES
    while len(held) < count and tries:
        made = socket.socket()
        try:
            made.settimeout(10)
            made.bind((f"127.0.1.{1 + len(held) // _PER_ADDRESS}", 0))
            made.connect(("127.0.0.1", port))
        except OSError:
            made.close()
            tries -= 1
        else:
            held.append(made)
    _say(len(held))
    sys.stdin.read()
    _say(sum(_is_open(each) for each in held))
    for each in held:
        each.close()


def _is_open(made: socket.socket) -> bool:
    made.setblocking(False)
    with suppress(BlockingIOError):
        made.recv(1)
        return False
    return True


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
