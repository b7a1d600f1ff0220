"""Backends from a file that others write: a ConfigMap, a script, an inventory.

Decided here: when its content counts, which is when two looks in a row agree (a file may be seen half written), and
that one that cannot be used leaves the last good one in force. Not decided here: what is in it (``read``).
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

from gateway.upstream.settings import Found

# Far more than a thousand backends need.
_LIMIT_BYTES = 4 << 20


class FileSource:
    """Looks at ``path`` every ``every_s``. ``read`` makes backends of its bytes, in a thread, or raises ValueError."""

    def __init__(self, path: Path, every_s: float, read: Callable[[bytes], Found]) -> None:
        self._path = path
        self._every_s = every_s
        self._read = read

    async def watch(self, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        told: bytes | None = None
        earlier = latest = await self._look(failed)  # at the start nobody waits for a second look
        while True:
            if latest is None:
                told = None  # should it come back as it was, that is news after a failure
            elif latest == earlier and latest != told:
                told = latest
                await self._take(latest, found, failed)
            await asyncio.sleep(self._every_s)
            earlier, latest = latest, await self._look(failed)

    async def _look(self, failed: Callable[[str], None]) -> bytes | None:
        try:
            return await asyncio.to_thread(_content, self._path)
        except OSError as error:
            failed(f"{self._path}: {error.strerror or error}")
            return None

    async def _take(self, content: bytes, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        try:
            backends = await asyncio.to_thread(self._read, content)  # a thousand entries take a second
        except ValueError as error:
            failed(str(error))
        else:
            found(backends)


def _content(path: Path) -> bytes:
    # Not waited for: a pipe that nobody writes to would hold its thread, and with it the end of the process, for ever.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("is no regular file")
        content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        raise OSError(f"longer than {_LIMIT_BYTES} bytes")
    return content
