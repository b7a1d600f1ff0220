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
    assert set(re.findall(r"<!-- (.+?) -->", PAGE)) == LISTS.keys()


def test_every_proof_is_a_test() -> None:
    proofs = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(proofs) > 25
    missing = [
        f"{path}::{name}"
        for path, name in proofs
        if not re.search(rf"def {name}\(", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_every_threat_has_a_proof() -> None:
    table = PAGE.split("| threat | protection | proof |", 1)[1].split("\n\n", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][1:]
    assert [row for row in rows if "::test_" not in row] == []
