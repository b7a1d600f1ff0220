"""A value of an effective policy as people and JSON see it: as it would be written in a file.

Decided here: the spelling. Not decided here: what "no value" means for a key (``published``, the commands).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from enum import StrEnum

from gateway.policy.choose import ChooseRule
from gateway.policy.effective import Adaptive, EngineFields, History, OnExcess, RateRule
from gateway.policy.rates import spelt
from gateway.types import Size


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
