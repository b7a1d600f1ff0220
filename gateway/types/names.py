"""Identifiers, and how a place in a request's body is written down.

Decided here: which strings and bytes are told apart by type. Not decided here: how any of them is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NewType, TypeAlias

TenantId = NewType("TenantId", str)
TaskName = NewType("TaskName", str)
BackendName = NewType("BackendName", str)
RequestId = NewType("RequestId", str)

# xxh3-128 over the decoded source bytes: places images on backends, never proves identity to an engine.
PlacementDigest = NewType("PlacementDigest", bytes)

# Keyed BLAKE3 (256 bit) over the decoded source bytes, salted per deployment: the root of every engine identity.
ContentDigest = NewType("ContentDigest", bytes)

# Where a value stands in the parsed body: object keys and array indices from the root.
Pointer: TypeAlias = tuple[str | int, ...]

HeaderList: TypeAlias = Sequence[tuple[str, str]]


def dotted(pointer: Pointer) -> str:
    """Name a part of the body for people: ``("messages", 1, "content", 0)`` -> ``messages.1.content.0``."""
    return ".".join(str(step) for step in pointer)
