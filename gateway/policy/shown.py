"""A value of an effective policy as people and JSON see it: as it would be written in a file.

Decided here: the spelling, and the words for "no value" and "nothing in it" of a key, which a file cannot always spell
(``hosts: none`` is no host at all). Not decided here: where such words are shown (the commands, the page).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum

from gateway.policy.choose import ChooseRule
from gateway.policy.effective import Adaptive, EngineFields, History, OnExcess, RateRule
from gateway.policy.rates import spelt
from gateway.types import Size

# What "no value" means, where it does not mean "no limit", and what an empty one means.
_NO_VALUE = {
    "max_pixels": "the engine's own cap",
    "hosts": "any public host",
    "history": "none",
    "adaptive": "off",
    "allowed_models": "any",
}
_EMPTY = {"max_side": "no limit", "max_input_side": "no limit", "detail": "ignore", "hosts": "none", "rates": "none"}


def plain(value: object) -> object:
    """Strings, numbers, lists and mappings only; ``None`` stays ``None``."""
    match value:
        case StrEnum():
            return value.value
        case OnExcess() | Adaptive():
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case EngineFields(others=others, named=()):
            return others.value
        case EngineFields(others=others, named=named):
            return {"others": others.value} | {name: action.value for name, action in named}
        case History():
            triggers = {"images": value.images, "bytes": value.bytes, "tokens": value.tokens}
            told_triggers = {name: amount for name, amount in triggers.items() if amount is not None}
            return {"trigger": told_triggers, "batch": value.batch, "keep_newest": value.keep_newest}
        case Size() | ChooseRule():
            return str(value)
        case (RateRule(), *_):
            return _rates([rule for rule in value if isinstance(rule, RateRule)])
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case tuple() if value and all(_is_pair(item) for item in value):
            return {str(key): plain(each) for key, each in value}
        case tuple() | list():
            return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _rates(rules: Sequence[RateRule]) -> dict[str, object]:
    """By unit, in the order in which they stand: one rate, or a list of those with different windows."""
    by_unit: dict[str, list[str]] = {}
    for rule in rules:
        by_unit.setdefault(rule.unit, []).append(spelt(rule))
    return {unit: found[0] if len(found) == 1 else found for unit, found in by_unit.items()}


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str | int)


def told(value: object) -> str:
    """`plain` in one line."""
    match plain(value):
        case None:
            return "none"
        case dict() as entries:
            return f"{{{', '.join(f'{key}: {told(each)}' for key, each in entries.items())}}}"
        case list() as items:
            return f"[{', '.join(told(item) for item in items)}]"
        case bool() as flag:
            return str(flag).lower()
        case float() as number:
            return f"{number:g}"
        case other:
            return str(other)


def in_words(key: str, value: object) -> str:
    """What ``value`` means for ``key``, in one line: `told`, but for values that mean something by not being there."""
    match plain(value):
        case None:
            return _NO_VALUE.get(key, "no limit")
        case []:
            return _EMPTY.get(key, "[]")
        case other:
            return told(other)
