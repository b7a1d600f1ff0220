"""``python -m tests.case_runner DIR``: one line a case, and the sum at the end. Exit code 1 when one failed."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path

from tests.case_runner.cases import find_cases
from tests.case_runner.run import Verdict, run_cases


def main(arguments: list[str]) -> int:
    """Run the cases that the arguments name."""
    parser = argparse.ArgumentParser(prog=".ci/cases", description="Run cases against a real gateway process.")
    parser.add_argument("folder", type=Path, help="a folder of cases, or one case")
    parser.add_argument("--kind", action="append", default=[], help="only cases of this kind; may be repeated")
    parser.add_argument("--id", action="append", default=[], help="only this case; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="gateways at one time (default 2)")
    parser.add_argument("--time-scale", type=float, default=1.0, help="factor on every time of the cases (default 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="every reason, in full")
    chosen = parser.parse_args(arguments)
    kinds = [kind for given in chosen.kind for kind in given.split(",")]
    if not chosen.folder.is_dir():
        parser.error(f"{chosen.folder} is no folder")
    cases = [case for case in find_cases(chosen.folder, kinds) if not chosen.id or case.id in chosen.id]
    if not cases:
        parser.error(f"no case in {chosen.folder}")

    def tell(verdict: Verdict) -> None:
        sys.stdout.write(line(verdict, verbose=chosen.verbose) + "\n")
        sys.stdout.flush()

    verdicts = asyncio.run(run_cases(cases, jobs=chosen.jobs, time_scale=chosen.time_scale, tell=tell))
    counts = Counter(verdict.outcome for verdict in verdicts)
    sys.stdout.write(f"{counts['ok']} passed, {counts['FAIL']} failed, 0 skipped\n")
    return 1 if counts["FAIL"] else 0


def line(verdict: Verdict, *, verbose: bool) -> str:
    """One line for one case; ``verbose`` adds a line for every further reason."""
    reasons = [reason if verbose else reason.replace("\n", " ")[:240] for reason in verdict.reasons]
    head = f"{verdict.outcome:<4} {verdict.case.id}"
    if not reasons:
        return head
    if verbose:
        return "\n".join((head, *(f"       {reason}" for reason in reasons)))
    more = f" (+{len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{head}  {reasons[0]}{more}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
