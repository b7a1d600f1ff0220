"""``python -m tests.fuzz [INPUTS] [--seed S] [--only N]``: progress on standard error, the verdict as one JSON line."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from tests.fuzz.drive import drive


def main() -> int:
    """Exit status 0 without findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("inputs", nargs="?", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="send the input of this number alone")
    given = parser.parse_args()
    first, inputs = (0, given.inputs) if given.only is None else (given.only, given.only + 1)
    verdict = asyncio.run(drive(inputs, given.seed, first=first, say=_say))
    sys.stdout.write(json.dumps(verdict.told()) + "\n")
    return 1 if verdict.findings else 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
