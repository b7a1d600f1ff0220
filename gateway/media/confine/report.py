"""Which walls stand around a worker, as it says itself and as operators read it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

# auto: close what the kernel has. require: refuse to start without all of it. off: limits only.
SandboxMode: TypeAlias = Literal["auto", "require", "off"]


class Layer(StrEnum):
    """The walls, in the order in which they close."""

    USER = "user"
    LANDLOCK = "landlock"
    DESCRIPTORS = "descriptors"
    SECCOMP = "seccomp"


class BoxReport(msgspec.Struct, frozen=True, array_like=True):
    """``active``: layer to what it does here. ``missing``: layer to why it is not there. Both empty: no box."""

    active: dict[str, str] = {}
    missing: dict[str, str] = {}

    def lines(self) -> dict[str, str]:
        """Every layer with what it does or why it is missing, for ``doctor`` and the log."""
        missing = {layer: f"missing: {reason}" for layer, reason in self.missing.items()}
        told = {**self.active, **missing}
        return {layer.value: told.get(layer, "off") for layer in Layer}
