from __future__ import annotations

import json

import pytest

from tests.fuzz.corpus import corpus
from tests.fuzz.drive import Verdict, drive, make_input
from tests.fuzz.send import Input

pytestmark = pytest.mark.slow


async def test_damaged_files_are_accepted_or_refused_and_no_worker_is_lost() -> None:
    """The short form of ``make fuzz``: every seed undamaged, then some hundred damaged ones."""
    verdict = await drive(600, seed=7)
    assert verdict.findings == []
    assert verdict.accepted.total() + verdict.refused.total() == 600
    assert corpus().keys() - verdict.accepted.keys() <= {"svg"}, "an undamaged seed of each other kind is accepted"
    told = json.loads(json.dumps(verdict.told()))
    assert (told["fuzz"], told["inputs"], told["workers_lost_to"]) == ("ok", 600, [])


def test_an_input_is_made_from_its_number_alone() -> None:
    seeds = corpus()
    assert make_input(1, 0, seeds) == Input(0, *next(iter(seeds.items())))
    assert make_input(1, 5_000, seeds) == make_input(1, 5_000, seeds) != make_input(2, 5_000, seeds)


def test_a_finding_fails_the_run() -> None:
    assert Verdict(1, 1, findings=["something"]).told()["fuzz"] == "findings"
