"""The families, one file each. To add one: its file, one line here, its checkpoints in `checkpoints.toml`."""

from __future__ import annotations

from typing import Final

from gateway.models.families.qwen2_vl import QWEN2_VL
from gateway.models.families.qwen3_vl import QWEN3_VL
from gateway.models.families.text_only import TEXT_ONLY
from gateway.models.families.unknown import UNKNOWN
from gateway.models.family import Family, Target, TargetReason
from gateway.types import ImageTokens

__all__ = ["FAMILIES", "Family", "ImageTokens", "Target", "TargetReason", "family_of"]

FAMILIES: Final[tuple[Family, ...]] = (
    QWEN2_VL,
    QWEN3_VL,
    TEXT_ONLY,
    UNKNOWN,
)

_BY_NAME: Final = {family.name: family for family in FAMILIES}


def family_of(name: str) -> Family:
    """The family that a checkpoint names. Raises `KeyError` for a name that is not in the registry."""
    return _BY_NAME[name]
