"""A policy file after YAML and before meaning: a tree whose every node remembers its line.

Decided here: the shape that `config.policies` hands over and how a mistake is reported. Mappings keep their entries in
a tuple, not a dict, so that a key written twice is still visible to `schema`. Not decided here: what any key means.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = "bool | int | float | str | None"


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One plain value; ``None`` is an empty value or YAML's null."""

    line: int
    value: Scalar


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list, in order."""

    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One ``key: value`` of a mapping; ``line`` is the key's."""

    key: str
    line: int
    node: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping with its entries as written, duplicates included."""

    line: int
    entries: tuple[Entry, ...]


Node: TypeAlias = ScalarNode | ListNode | MappingNode


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in one file. ``path`` is dotted (``tasks.ocr.max_pixels``), empty for the file as a whole.

    ``line`` 0: it is a folder, which has none.
    """

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where} {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


def kind_of(node: Node) -> str:
    """Name what stands in the file, for messages."""
    if not isinstance(node, ScalarNode):
        if isinstance(node, ListNode):
            return "a list" if node.items else "an empty list"
        return "a mapping"
    value = node.value
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, str):
        return repr(shortened(value))
    return "nothing" if value is None else f"the number {value}"


def shortened(text: str, limit_chars: int = 40) -> str:
    """Cut text that is quoted in a message, so that a misplaced secret or a whole paragraph is not repeated."""
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Say ``; did you mean X?`` for the nearest known word, or nothing where none is near."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
