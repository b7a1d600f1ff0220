"""From a table's family, checkpoint and parameters to the family and checkpoint that we count with."""

from __future__ import annotations

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import FAMILIES, Family, family_of
from tests.golden.grids import GRIDDED, gridded
from tests.golden.tables import Row, parameters
from tests.golden.tilings import TILED, tiled

# Families of the tables that are one of ours under other numbers.
SAME_AS = {
    "qwen2_5_vl": "qwen2_vl",
    "qwen3_5": "qwen3_vl",
    "qwen2_5_omni": "qwen2_vl",
    "qwen3_omni": "qwen3_vl",
    "dots_ocr": "qwen2_vl",
    "glm46v": "glm4v",
    "mistral3_hf": "pixtral_hf",
    "mistral3_mistral": "pixtral_mistral",
    "internvl_hf": "internvl",
    "internvl_sglang": "internvl",
    "smolvlm2": "smolvlm",
}
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
    checkpoint = gridded(row, match.checkpoint) if row["family"] in GRIDDED else match.checkpoint
    assert checkpoint.family == name, f"{row['checkpoint']} is {checkpoint.family}, not {name}"
    if row["family"] in GRIDDED:
        return family_of(name), checkpoint
    if row["family"] in TILED:
        return family_of(name), tiled(row, checkpoint)
    limits = parameters(row)
    assert (checkpoint.patch, checkpoint.merge) == (limits["patch_size"], limits["merge_size"])
    low, high = limits["min_pixels"], limits["max_pixels"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    return family_of(name), checkpoint.with_(min_pixels=low, max_pixels=high)
