"""Closed APIs as compatibility profiles: what the same image would cost elsewhere, by model name and detail.

Decided here: which names belong to which profile. A name that none fits is not guessed. To add one: a row in the
vendor's file, or a vendor's file and one line here.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.models.closed import anthropic, gemini, openai
from gateway.models.closed.profile import ClosedProfile, ClosedTokens

__all__ = ["ClosedProfile", "ClosedTokens", "closed_profile"]

# What may follow a model's name without making it another model: dates and channel names.
_TAIL: Final = re.compile(r"(?:-(?:latest|preview|exp|\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}))*(?:[:@].*)?")
_CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?(?:-|@|:|$)")
_GEMINI: Final = re.compile(r"gemini-([23])(?:[.-]|$)")
_CLAUDE_NEWER: Final = (4, 7)


def closed_profile(name: str) -> ClosedProfile | None:
    """The profile of a closed API's model name (``gpt-4o``, ``openai/gpt-4o-2024-08-06``); ``None`` for any other."""
    model = name.rsplit("/", 1)[-1].lower()
    for key in sorted(openai.PROFILES, key=len, reverse=True):
        if model.startswith(key) and _TAIL.fullmatch(model, len(key)):
            return openai.PROFILES[key]
    if model == anthropic.BY_AREA.name:
        return anthropic.BY_AREA
    if found := _CLAUDE.match(model):
        version = (int(found[1]), int(found[2] or 0))
        return anthropic.FROM_4_7 if version >= _CLAUDE_NEWER else anthropic.BEFORE_4_7
    if found := _GEMINI.match(model):
        return gemini.GEMINI_3 if found[1] == "3" else gemini.GEMINI_2
    return None
