"""Logs as commands read them: plain, gzip, standard input, or a file that is still being written.

Decided here: how a log is opened and followed. Not decided here: what stands in a line.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from gateway.cli.output import fail

# Access lines have a few KB; what is longer is none.
MOST_LINE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_LOOK_EVERY_S = 0.2


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """A log as a stream of bytes; ``-`` is standard input. Exits with a message where there is none."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as stream:
            if stream.peek(2)[:2] != _GZIP:
                yield stream
                return
            with gzip.open(stream) as unpacked:
                yield cast("BinaryIO", unpacked)
    except OSError as error:  # of opening: whoever reads sees to what comes later
        raise fail(f"{name}: cannot be read: {error.strerror}", code=2) from None


def followed(name: str) -> Generator[bytes, None, None]:
    """The lines of a file, and on as they are written, for ever: a file that is replaced or cut short is begun anew.

    Exits with a message where there is no file at first.
    """
    path = Path(name)
    stream = _again(path)
    if stream is None:
        raise fail(f"{name}: cannot be read.", code=2)
    begun = b""
    try:
        while True:
            piece = stream.readline(MOST_LINE_BYTES)
            begun += piece
            if begun.endswith(b"\n") or len(begun) >= MOST_LINE_BYTES:
                yield begun
                begun = b""
            elif not piece:
                if _is_other(path, stream) and (newer := _again(path)) is not None:
                    stream.close()
                    stream, begun = newer, b""
                else:
                    time.sleep(_LOOK_EVERY_S)
    finally:
        stream.close()


def _again(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except OSError:
        return None


def _is_other(path: Path, stream: BinaryIO) -> bool:
    """Whether the name stands for another file by now, or for less of this one than was read."""
    try:
        now = path.stat()
    except OSError:
        return False
    return not path.samefile(f"/proc/self/fd/{stream.fileno()}") or now.st_size < stream.tell()
