"""``python -m tests.rollout [--requests N] [--rounds N] [--json FILE]``: a table, and exit status 0 without findings.

Two real gateways on one Redis before two simulated engines, HAProxy and Envoy before them, load through both: texts,
pictures, streams that outlive a drain, slow uploads, sounds. Each gateway is told to leave in turn, drains and is
started anew, ``--rounds`` times; no request may fail, budgets in Redis must equal the answers. Then some are killed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import cast

from tests.rollout.drive import Plan, drive

_Rows = dict[str, dict[str, dict[str, float]]]


def main() -> int:
    """Run it and print what became of it."""
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.rollout")
    parser.add_argument(
        "--requests", type=int, default=usual.requests, help="through both balancers together, at least"
    )
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="over both gateways")
    parser.add_argument("--clients", type=int, default=usual.clients, help="at a time, of each balancer")
    parser.add_argument("--kills", type=int, default=usual.kills, help="afterwards")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the facts there as well")
    given = parser.parse_args()
    plan = Plan(given.requests, given.rounds, given.clients, kills=given.kills)
    with tempfile.TemporaryDirectory(prefix="roll-") as folder:
        verdict = drive(plan, Path(folder), _say)
    lines = [*table(verdict.facts), *(f"FINDING {finding}" for finding in verdict.findings)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if given.json is not None:
        found = {"findings": verdict.findings, **verdict.facts}
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if verdict.findings else 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def table(facts: dict[str, object]) -> list[str]:
    """The facts for people."""
    rolling = cast("dict[str, object]", facts["rolling"])
    books = cast("dict[str, object]", rolling["books"])
    turns = cast("list[dict[str, object]]", rolling["turns"])
    spanning = f"{rolling['streams_spanning_a_drain']} of {rolling['streams']} streams spanned a drain"
    replaced = (
        f"{len(turns)} gateways replaced, {spanning}, {rolling['uploads_spanning_a_signal']} uploads its beginning"
    )
    off = f"{books['tokens_difference_us']} and {books['requests_difference_us']} us of the buckets"
    lines = [
        f"rolling restart: {rolling['requests']} requests, {rolling['failed']} failed; {replaced}",
        *_rows(cast("_Rows", rolling["balancers"])),
        f"  tokens    answered {books['tokens_answered']}, charged in Redis {books['tokens_charged']}",
        f"  requests  answered {books['requests_answered']}, charged in Redis {books['requests_charged']}",
        f"  differing by {off}; left reserved: {books['held']}",
        f"  pictures  share of the prompt cached: {rolling['affinity']}",
        *(f"  turn      {_turn(turn)}" for turn in turns),
    ]
    if "killed" not in facts:
        return lines
    killed = cast("dict[str, object]", facts["killed"])
    failed = f"{killed['in_flight_at_the_kills']} in flight at the kills, {killed['failed']} failed"
    return [
        *lines,
        "",
        f"kill -9: {killed['requests']} requests, {failed}",
        f"  sent to engines twice: {killed['sent_twice']}; left reserved: {killed['held']}",
        *_rows(cast("_Rows", killed["balancers"])),
        *(f"  {failure}" for failure in cast("list[str]", killed["failures"])),
    ]


def _rows(balancers: _Rows) -> list[str]:
    head = f"  {'':10}{'':10}{'requests':>9}{'failed':>8}{'p50 ms':>9}{'p99 ms':>9}"
    rows = [
        f"  {balancer:10}{kind:10}{each['requests']:>9}{each['failed']:>8}{each['p50_ms']:>9}{each['p99_ms']:>9}"
        for balancer, kinds in balancers.items()
        for kind, each in kinds.items()
    ]
    return [head, *rows]


def _turn(turn: dict[str, object]) -> str:
    return (
        f"gateway {turn['gateway']} left after {turn['left_after_s']} s, ready after {turn['ready_after_s']} s,"
        f" trusted after {turn['trusted_after_s']} s"
    )


if __name__ == "__main__":
    sys.exit(main())
