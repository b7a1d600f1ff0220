"""Noticing that configuration changed on disk: an edited file, a new one, a ConfigMap whose symlinks were swapped.

Decided here: what counts as a change and when it is complete (two looks in a row that agree). Not decided here: what is
read then, and whether it can be used. Files are looked at and not subscribed to: network file systems and some volumes
of Kubernetes notify nobody, and a look at a hundred files costs a millisecond in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

Fingerprint: TypeAlias = "frozenset[tuple[str, int, int, int]]"


def fingerprint(paths: Sequence[Path]) -> Fingerprint:
    """Every file in question by name, inode, time of change and size; what cannot be looked at counts as absent.

    Folders stand for the visible files directly in them. Symbolic links are followed: a swapped link is another inode.
    """
    found: set[tuple[str, int, int, int]] = set()
    for path in paths:
        for file in _files(path):
            try:
                state = file.stat()
            except OSError:
                continue
            found.add((str(file), state.st_ino, state.st_mtime_ns, state.st_size))
    return frozenset(found)


def _files(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
    except NotADirectoryError:
        return [path]
    except OSError:
        return []


async def watch(
    paths: Callable[[], Sequence[Path]],
    every_s: float,
    changed: Callable[[], Awaitable[object]],
    acted_on: Fingerprint | None = None,
) -> None:
    """Call ``changed`` after every change, until cancelled. ``paths`` is asked each time: a reload may move them.

    ``acted_on``: the files as they were before they were read, so that an edit since then is not missed.
    """
    if acted_on is None:
        acted_on = await asyncio.to_thread(fingerprint, paths())
    latest = acted_on
    while True:
        await asyncio.sleep(every_s)
        earlier, latest = latest, await asyncio.to_thread(fingerprint, paths())
        if latest != acted_on and latest == earlier:
            acted_on = latest
            await changed()
