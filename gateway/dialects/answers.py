"""Walking through answers, which engines may shape as they like: what is not as documented is passed over.

Decided here: how lists of objects are met. Not decided here: which of their members hold text (the dialects).
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.types import Json, JsonObject, LongString, Pointer


def objects(tree: Json, pointer: Pointer) -> Iterator[tuple[Pointer, JsonObject]]:
    """The objects of the list at ``pointer``, with their own pointers."""
    for step in pointer:
        tree = tree.get(step) if isinstance(tree, dict) and isinstance(step, str) else None
    if isinstance(tree, list):
        for index, entry in enumerate(tree):
            if isinstance(entry, dict):
                yield (*pointer, index), entry


def is_text(value: Json) -> bool:
    """Whether there is a string, read or left in the body."""
    return isinstance(value, str | LongString)


def number(value: Json) -> int:
    """An index; 0 where there is none."""
    return value if isinstance(value, int) else 0
