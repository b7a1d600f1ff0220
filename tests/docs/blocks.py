"""The blocks of a page that tests execute: each has its name behind its language (``yaml litellm/gateway.yaml``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One of them; ``name`` is empty where nothing is to be done with it."""

    language: str
    name: str
    text: str


def blocks(page: str) -> list[Block]:
    """In the order in which they stand on the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(language, name or "", body) for language, name, body in _BLOCK.findall(text)]
