"""The threat model lists what the code strips, and every proof it names is a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.types import foreign
from gateway.upstream import headers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")

LISTS = {
    "fields: body": foreign.BODY,
    "fields: part": foreign.PART,
    "fields: medium": foreign.MEDIUM,
    "fields: part types": foreign.PART_TYPES,
    "headers: hop": headers._HOP_BY_HOP | headers._FRAMING,
    "headers: routing": headers._ENGINE_ROUTING,
    "headers: prefixes": {*headers._ENGINE_ROUTING_PREFIXES, headers._OWN_PREFIX},
    "headers: credentials": headers._CREDENTIALS,
}


def listed(marker: str) -> list[str]:
    """The names in the first column of the table behind a marker."""
    table = PAGE.split(f"<!-- {marker} -->\n", 1)[1].split("\n\n", 1)[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


@pytest.mark.parametrize("marker", LISTS)
def test_a_list_is_the_codes_list(marker: str) -> None:
    names = listed(marker)
    assert sorted(names) == sorted(LISTS[marker])


def test_every_list_is_compared() -> None:
    assert set(re.findall(r"<!-- (.+?) -->", PAGE)) == LISTS.keys() | {"surfaces"}


def test_every_proof_is_a_test() -> None:
    proofs = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(proofs) > 25
    missing = [
        f"{path}::{name}"
        for path, name in proofs
        if not re.search(rf"def {name}\(", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert missing == []


def rows(head: str) -> list[list[str]]:
    """The cells of the table with this head."""
    table = PAGE.split(head, 1)[1].split("\n\n", 1)[0]
    lines = [line for line in table.splitlines() if line.startswith("|")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


THREATS = rows("| on | STRIDE | threat | protection | proof |")
ACCEPTED = rows("| on | STRIDE | risk | decision |")
SURFACES = [row[0] for row in rows("| surface | what crosses | between |")]


def test_every_threat_has_a_proof() -> None:
    assert len(THREATS) > 60
    assert [row for row in THREATS if "::test_" not in row[-1]] == []
    assert [row for row in [*THREATS, *ACCEPTED] if "" in row] == []


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("letter", "STRIDE")
def test_every_surface_has_an_answer_to_every_letter(surface: str, letter: str) -> None:
    """A protection with its proof, or a risk that is accepted and says why."""
    assert [row for row in [*THREATS, *ACCEPTED] if surface in row[0].split(", ") and letter in row[1]]


def test_rows_name_surfaces_and_letters_that_there_are() -> None:
    assert len(SURFACES) == len(set(SURFACES)) > 8
    for on, letters, *_ in [*THREATS, *ACCEPTED]:
        assert set(on.split(", ")) <= set(SURFACES), on
        assert set(letters) <= set("STRIDE"), letters
        assert list(letters) == sorted(letters, key="STRIDE".index), letters
        assert len(letters) == len(set(letters)), letters


def test_links_within_lead_somewhere() -> None:
    titles = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= titles
