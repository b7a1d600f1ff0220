"""The command line: one file per group of commands, named in ``commands``.

Decided here: names, flags, exit codes (0 done, 1 it failed, 2 wrong usage or configuration) and what is printed. Not
decided here: anything the commands show; they call the same code that serves.
"""

from __future__ import annotations

import sys

from gateway.cli.footing import stand

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name; exits the process."""
    stand()
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"] and "--live" in arguments:
        # asked every few seconds, in every container: it gets by without what the commands import
        from gateway.cli.live import main as look  # noqa: PLC0415

        sys.exit(look(arguments[1:]))
    from gateway.cli.commands import COMMANDS, application  # noqa: PLC0415  # seconds on a busy machine

    application(arguments[0] if arguments and arguments[0] in COMMANDS else None)()
