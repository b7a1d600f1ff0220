"""A wall clock that jumps while processes run by it; everything that waits goes on by the monotonic clock.

Decided here: how a process gets such a clock: a library of a few lines (``wall_clock.c``), built on the spot and loaded
before all others, reads an offset from a file. libfaketime does not serve: with the monotonic clock left alone, its
``clock_nanosleep`` makes CPython's ``time.sleep`` fail (0.9.10).
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")
_MICROSECONDS = 1_000_000


class WallClock:
    """``environment`` is for processes that are to live by it, ``jump`` sets it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self._file.write_bytes(struct.pack("q", 0))
        self._library = folder / "wall_clock.so"
        if not self._library.exists():
            compiler = shutil.which("gcc") or shutil.which("cc")
            assert compiler is not None, "a C compiler is missing: .ci/setup installs it"
            command = (compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self._library, _SOURCE)
            subprocess.run(command, check=True)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}

    def jump(self, offset_s: float) -> None:
        """From now on it is ``offset_s`` ahead of the machine's (behind it, if negative)."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", int(offset_s * _MICROSECONDS)))

    def wrapped(self, program: str, name: str) -> str:
        """A script that runs ``program`` under this clock, called ``name``."""
        script = self._file.with_suffix(".sh")
        lines = ["#!/bin/bash", *(f"export {key}='{value}'" for key, value in self.environment.items())]
        script.write_text("\n".join([*lines, f"exec -a '{name}' '{program}' \"$@\""]) + "\n", encoding="utf-8")
        script.chmod(0o755)
        return str(script)
