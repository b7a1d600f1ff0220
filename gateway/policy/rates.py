"""The keys ``rates`` (how much of each unit a tenant may use in a window, as in ``images: 600/min``) and ``weight``.

Decided here: spelling and ranges. A rate is an amount, a window and perhaps a burst: ``600/min``, ``1M/day``,
``600/min burst 50``; several windows of one unit stand in a list; ``none`` lifts what was inherited. Amounts take
``k``, ``M`` and ``G`` (powers of 1,000). Without a burst the whole amount may come at once. Not decided here: what a
request is charged and how a window is kept (`quota`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from gateway.policy.effective import RateRule
from gateway.policy.node import ListNode, MappingNode, Node, ScalarNode, nearest
from gateway.policy.values import BadValue, JsonSchema, Mistake, bad

RATE_UNITS = (
    "requests",
    "tokens",
    "images",
    "megapixels",
    "image_tokens",
    "prompt_tokens",
    "output_tokens",
    "kv_token_seconds",
)
WINDOWS_S = {"s": 1, "min": 60, "h": 3_600, "day": 86_400}
_OTHER_WORDS = {"sec": "s", "second": "s", "m": "min", "minute": "min", "hour": "h", "hr": "h", "d": "day"}
_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_AMOUNT = r"(\d{1,15}(?:\.\d{1,9})?)\s*([kMG]?)"
_RATE = re.compile(rf"{_AMOUNT}\s*/\s*([A-Za-z]+)(?:\s+burst\s+{_AMOUNT})?")
_SCALES = {"megapixels": 10**6}
_MOST = 10**12
_EXPECTED = "a rate such as 600/min, 1M/day or 600/min burst 50"


@dataclass(frozen=True, slots=True)
class Rates:
    """A mapping from unit to one rate or a list of them, a window no more than once each."""

    def parse(self, node: Node) -> tuple[RateRule, ...]:
        if isinstance(node, ScalarNode) and node.value == "none":
            return ()
        if not isinstance(node, MappingNode):
            raise bad(node, "a mapping such as {images: 600/min, image_tokens: 1M/day}, or none")
        rules: list[RateRule] = []
        mistakes: list[Mistake] = []
        seen: set[str] = set()
        for entry in node.entries:
            if entry.key not in RATE_UNITS:
                hint = nearest(entry.key, RATE_UNITS)
                mistakes.append(Mistake(entry.line, f"unknown unit{hint or '; one of ' + ', '.join(RATE_UNITS)}"))
                continue
            if entry.key in seen:
                mistakes.append(Mistake(entry.line, "this unit is written twice", entry.key))
                continue
            seen.add(entry.key)
            try:
                rules += _windows(entry.key, entry.node)
            except BadValue as error:
                mistakes += [Mistake(m.line, m.message, entry.key) for m in error.mistakes]
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(sorted(rules, key=lambda rule: (RATE_UNITS.index(rule.unit), rule.window_s)))

    def schema(self) -> JsonSchema:
        one: JsonSchema = {
            "type": "string",
            "pattern": rf"^{_AMOUNT}\s*/\s*({'|'.join(WINDOWS_S)})( burst {_AMOUNT})?$",
        }
        either: JsonSchema = {"anyOf": [one, {"const": "none"}, {"type": "array", "items": one, "minItems": 1}]}
        units: JsonSchema = {
            "type": "object",
            "properties": dict.fromkeys(RATE_UNITS, either),
            "additionalProperties": False,
        }
        return {"anyOf": [units, {"const": "none"}]}


def _windows(unit: str, node: Node) -> list[RateRule]:
    if isinstance(node, ScalarNode) and node.value == "none":
        return []
    items = node.items if isinstance(node, ListNode) else (node,)
    rules = [_rate(unit, item) for item in items]
    if not rules:
        raise bad(node, _EXPECTED)
    if len({rule.window_s for rule in rules}) < len(rules):
        raise BadValue(Mistake(node.line, "two rates have the same window"))
    return rules


def _rate(unit: str, node: Node) -> RateRule:
    value = node.value if isinstance(node, ScalarNode) else None
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise bad(node, _EXPECTED)
    number, factor, window, burst, burst_factor = found.groups()
    if window not in WINDOWS_S:
        known = _OTHER_WORDS.get(window.rstrip("s") or window)
        hint = f"; did you mean {known}?" if known else nearest(window, WINDOWS_S)
        raise BadValue(Mistake(node.line, f"window {window!r} is not one of {', '.join(WINDOWS_S)}{hint}"))
    amount = _whole(node, unit, number, factor)
    most = None if burst is None else _whole(node, unit, burst, burst_factor)
    if most is not None and most > amount:
        raise BadValue(Mistake(node.line, "a burst above the whole window's amount has no meaning"))
    return RateRule(unit, amount, WINDOWS_S[window], most)


def _whole(node: Node, unit: str, number: str, factor: str) -> int:
    amount = Fraction(number) * _FACTORS[factor] * _SCALES.get(unit, 1)
    if amount.denominator != 1:
        raise BadValue(Mistake(node.line, f"{number}{factor} is not a whole number"))
    if not 1 <= amount <= _MOST * _SCALES.get(unit, 1):
        raise BadValue(Mistake(node.line, f"{number}{factor} is out of range: a rate is 1 to {_MOST}"))
    return int(amount)


def spelt(rule: RateRule) -> str:
    """The rate as a file would write it: ``600/min burst 50``."""
    window = next(name for name, seconds in WINDOWS_S.items() if seconds == rule.window_s)
    rate = f"{_spelt_amount(rule.unit, rule.amount)}/{window}"
    return rate if rule.burst is None else f"{rate} burst {_spelt_amount(rule.unit, rule.burst)}"


def _spelt_amount(unit: str, amount: int) -> str:
    """With the largest factor that leaves a whole number; parts of a megapixel as decimals."""
    whole, rest = divmod(amount, _SCALES.get(unit, 1))
    if rest:
        return f"{whole}.{rest:06d}".rstrip("0")
    factor = next(name for name, times in reversed(_FACTORS.items()) if whole % times == 0)
    return f"{whole // _FACTORS[factor]}{factor}"


@dataclass(frozen=True, slots=True)
class Weight:
    """How large a tenant's fair share is against another's of weight 1."""

    def parse(self, node: Node) -> float:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise bad(node, "a number such as 1 or 2.5")
        if not 0.01 <= value <= 1_000:
            raise BadValue(Mistake(node.line, f"{value} is out of range: 0.01 to 1000"))
        return float(value)

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": 0.01, "maximum": 1000}
