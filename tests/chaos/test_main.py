"""What can be chosen, what is told, and with which status it ends; no system is started for it."""

from __future__ import annotations

import io
import itertools
import json

import pytest
from rich.console import Console

from tests.chaos.__main__ import main
from tests.chaos.catalogue import FAULTS, chosen
from tests.chaos.report import as_json, print_table
from tests.chaos.run import Report


def report(*violations: str) -> Report:
    return Report(
        name="worker-killed", shape="alone", started_s=1.5, asked=30,
        succeeded=29, errors={"backend_lost": 1}, recovered_s=0.5,
        whole_s=None, bound_s=10, descriptors=(50, 52), memory_mib=(200, 210), seconds=4.0, notes=("a note",),
        violations=violations,
    )  # fmt: skip


def test_names_are_unique_and_a_short_run_is_a_part_of_the_whole() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert {fault.name for fault in chosen(short=True)} < set(names)


def test_faults_of_one_shape_stand_together() -> None:
    shapes = [fault.shape for fault in chosen()]
    assert sum(one != other for one, other in itertools.pairwise(shapes)) == len(set(shapes)) - 1


def test_the_list_and_a_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "backend-killed"]) == 0
    assert capsys.readouterr().out == "backend-killed\n"
    with pytest.raises(SystemExit) as left:
        main(["--only", "no-such-fault"])
    assert left.value.code == 2


def test_a_table_tells_every_violation_in_full() -> None:
    into = io.StringIO()
    print_table([report(), report("a [bracketed] violation")], 8.0, Console(file=into, width=200))
    told = into.getvalue()
    assert "a [bracketed] violation" in told
    assert "2 faults, 60 requests, 8 s: 1 violations" in told


def test_json_tells_whether_all_held() -> None:
    assert json.loads(as_json([report()], 4.0, 1))["held"] is True
    broken = json.loads(as_json([report("one")], 4.0, 1))
    assert broken["held"] is False
    assert broken["faults"][0]["violations"] == ["one"]
