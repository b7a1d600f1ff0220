"""The page of scale says what its numbers say, and its simulation loses what a zone takes and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import computed, write
from benchmarks.scale_fleet import restarts, zone_loss
from benchmarks.scale_page import put

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    return found


def test_the_page_agrees_with_the_stored_numbers(report: dict[str, Any]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert put(page, report) == page


def test_what_is_computed_follows_from_what_was_measured(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(computed(report["measured"]))) == report["computed"]


def test_a_page_is_written_with_its_numbers_beside_it(report: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "scale.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    report["computed"]["load"]["of_a_gateway"] = 4711
    write(report, page)
    assert "4711 a gateway" in page.read_text(encoding="utf-8")
    assert json.loads(page.with_suffix(".json").read_text(encoding="utf-8")) == report


def test_a_page_without_a_place_is_refused(report: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the page has no"):
        put("# Nothing here", report)


def test_a_zone_takes_what_was_on_it_and_the_rest_is_served() -> None:
    found: dict[str, Any] = zone_loss("zipf", 300, backends=9, gateways=6)
    assert 0 < found["lost_with_the_zone"] <= found["in_flight_at_the_loss"]
    # Three dead engines, four gateways left: each meets each of them once.
    assert 0 < found["resent_after_a_refused_connection"] <= 3 * 4
    assert found["worst_slice"]["hit_share"] <= found["before"]["hit_share"]


def test_gateways_that_know_nothing_find_what_is_held_by_its_contents() -> None:
    found: dict[str, Any] = restarts("zipf", 600, backends=9, gateways=3)
    assert found["at_the_end"]["hit_share"] > found["before"]["hit_share"] - 0.15
