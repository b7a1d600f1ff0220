"""Cases -> verdicts: groups that share a gateway, several groups at a time.

Decided here: which cases run together, what becomes of an error of the runner itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.case_runner.behaviour import BadScript
from tests.case_runner.cases import Case
from tests.case_runner.checks.verdict import judge
from tests.case_runner.gateway_process import GatewayDidNotStart
from tests.case_runner.operations import Operations
from tests.case_runner.performance import Performance
from tests.case_runner.stores import NoStore
from tests.case_runner.topology import Topology


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case."""

    case: Case
    outcome: Literal["ok", "FAIL"]
    reasons: tuple[str, ...] = ()


def _processes(case: Case) -> int:
    return max((int(step.get("workers", 1)) for step in case.steps if step.get("do") == "start_gateway"), default=1)


async def run_cases(
    cases: Sequence[Case], *, jobs: int, time_scale: float, tell: Callable[[Verdict], None]
) -> list[Verdict]:
    """Run all; ``tell`` hears of each verdict as it is reached."""
    verdicts: list[Verdict] = []

    def note(verdict: Verdict) -> None:
        verdicts.append(verdict)
        tell(verdict)

    groups: dict[str, list[Case]] = {}
    for case in cases:
        if case.problem is not None:
            note(Verdict(case, "FAIL", (case.problem,)))
        else:
            groups.setdefault(case.group(), []).append(case)
    slots = asyncio.Semaphore(jobs)

    async def one(group: list[Case]) -> None:
        async with slots:
            await _run_group(group, time_scale, note)

    # Long ones first: the last to end decides when all has ended.
    ordered = sorted(groups.values(), key=lambda group: (-len(group), group[0].id))
    await asyncio.gather(*(one(group) for group in ordered))
    return verdicts


async def _run_group(group: list[Case], time_scale: float, note: Callable[[Verdict], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="vlmgw-case-") as folder:
        topology = Topology(group, Path(folder))
        left = list(group)
        try:
            processes = _processes(group[0])
            extra = ("--processes", str(processes)) if processes > 1 else ()
            await topology.start(*extra, with_store=any(step.get("do") == "store" for step in group[0].steps))
            for case in group:
                note(await _run_case(case, topology, time_scale))
                left.remove(case)
        except (GatewayDidNotStart, NoStore, OSError) as error:
            for case in left:
                note(Verdict(case, "FAIL", (f"{type(error).__name__}: {error}",)))
        finally:
            await topology.stop()


async def _run_case(case: Case, topology: Topology, time_scale: float) -> Verdict:
    try:
        performance = Performance(case, topology, time_scale)
        await performance.begin()
        if any("do" in step for step in case.steps):
            await Operations(performance).run()
        else:
            await performance.play_requests()
        await performance.settle()
        await performance.check_alive()
        problems = judge(performance.seen, case.expect)
    except (BadScript, NoStore) as error:
        problems = [f"the runner cannot play it: {error}"]
    except Exception:  # noqa: BLE001 - one broken case must not hide the others
        problems = [f"the runner broke: {traceback.format_exc(limit=-3)}"]
    return Verdict(case, "FAIL" if problems else "ok", tuple(problems))
