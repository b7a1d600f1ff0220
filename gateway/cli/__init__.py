"""The command line: one file per group of commands, wired in ``main``.

Decided here: names, flags, exit codes (0 done, 1 it failed, 2 wrong usage or configuration) and what is printed. Not
decided here: anything the commands show; they call the same code that serves.
"""

from __future__ import annotations

from gateway.cli.main import main

__all__ = ["main"]
