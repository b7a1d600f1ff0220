"""``python -m tests.chaos [--short] [--only NAME ...] [--list] [--json] [--seed N]``: 1 for a violated invariant."""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chaos.catalogue import chosen
from tests.chaos.fleet import Fleet
from tests.chaos.report import as_json, print_table
from tests.chaos.run import Fault, Report, baselines_of, run


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 when every invariant held, 1 otherwise, 2 for a name that is none."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the faults of a short run alone")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this fault; repeat for more")
    parser.add_argument("--list", action="store_true", help="name all faults and end")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output instead of a table")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked")
    given = parser.parse_args(arguments)
    try:
        faults = chosen(short=given.short, only=given.only)
    except ValueError as error:
        parser.error(str(error))
    if given.list:
        sys.stdout.writelines(f"{fault.name}\n" for fault in faults)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, as on any other way out
    began_s = time.monotonic()
    reports = list(_all(faults, given.seed))
    seconds = time.monotonic() - began_s
    if given.json:
        sys.stdout.write(as_json(reports, seconds, given.seed) + "\n")
    else:
        print_table(reports, seconds)
    return 1 if any(report.violations for report in reports) else 0


def _all(faults: Sequence[Fault], seed: int) -> Iterator[Report]:
    """Faults of one shape strike one fleet, one after the other, so that what leaks adds up."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for number, (shape, group) in enumerate(itertools.groupby(faults, lambda fault: fault.shape)):
            with Fleet(shape, Path(folder) / str(number)) as fleet:
                fleet.until_whole()
                baselines = baselines_of(fleet, seed + number)
                for fault in group:
                    yield _told(run(fleet, fault, baselines, seed))


def _told(report: Report) -> Report:
    held = "held" if not report.violations else f"VIOLATED: {'; '.join(report.violations)}"
    sys.stderr.write(f"chaos: {report.name}: {report.seconds:.1f} s, {held}\n")
    sys.stderr.flush()
    return report


if __name__ == "__main__":
    sys.exit(main())
