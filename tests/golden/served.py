"""From a table's family, checkpoint and parameters to the family and checkpoint that we count with."""

from __future__ import annotations

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import FAMILIES, Family, family_of
from tests.golden.tables import Row, parameters

# Families of the tables that are one of ours under other numbers.
SAME_AS = {"qwen2_5_vl": "qwen2_vl", "qwen3_5": "qwen3_vl"}
CATALOG = shipped_catalog()
_OURS = {family.name for family in FAMILIES}


def our_name(family: str) -> str | None:
    """Our name of a table's family; ``None`` while the registry has none."""
    name = SAME_AS.get(family, family)
    return name if name in _OURS else None


def served(row: Row) -> tuple[Family, Checkpoint]:
    """The family and checkpoint of an image row, under the row's parameters."""
    name = our_name(row["family"])
    assert name is not None, f"no family is registered for {row['family']}"
    match = CATALOG.find(row["checkpoint"].partition(" (")[0])
    assert match.how == "exact", f"{row['checkpoint']} is not in the catalogue"
    assert match.checkpoint.family == name, f"{row['checkpoint']} is {match.checkpoint.family}, not {name}"
    limits = parameters(row)
    checkpoint = match.checkpoint
    assert (checkpoint.patch, checkpoint.merge) == (limits["patch_size"], limits["merge_size"])
    low, high = limits["min_pixels"], limits["max_pixels"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    return family_of(name), checkpoint.with_(min_pixels=low, max_pixels=high)
