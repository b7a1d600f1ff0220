"""Kinds of values a policy may hold: how each is read from a node and described in JSON Schema.

Decided here: spelling, units and ranges. A kind reports every mistake inside its own value at once (`BadValue`).
Units: pixels take ``MP`` (10^6) and products such as ``1280x32x32``; bytes take ``KiB MiB GiB`` (powers of 1,024) and
``kB MB GB`` (powers of 1,000). Where a limit may be absent the word ``none`` says so; an empty value never does,
because it is more often a slip than a wish.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Protocol, TypeAlias

from gateway.policy.node import ListNode, MappingNode, Node, ScalarNode, kind_of, nearest
from gateway.types import Size

JsonSchema: TypeAlias = dict[str, object]

PIXEL_UNITS = {"MP": 10**6}
BYTE_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}

_NUMBER_WITH_UNIT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z/]+)")
_PRODUCT = re.compile(r"\d+(?:x\d+)+")
_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")
_HOST = re.compile(r"(?:\*\.)?(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, at which line, and in which part of the value (empty: the value itself)."""

    line: int
    message: str
    part: str = ""


class BadValue(Exception):
    """A value is not what its key takes; holds all its mistakes."""

    def __init__(self, *mistakes: Mistake) -> None:
        self.mistakes = mistakes
        super().__init__("; ".join(mistake.message for mistake in mistakes))


class Kind(Protocol):
    """One kind of value."""

    def parse(self, node: Node) -> object:
        """Raise BadValue, or return the value as the policy's typed field holds it."""
        ...

    def schema(self) -> JsonSchema: ...


def bad(node: Node, expected: str, hint: str = "") -> BadValue:
    """A BadValue of one mistake: what is expected against what stands there."""
    return BadValue(Mistake(node.line, f"expected {expected}, found {kind_of(node)}{hint}"))


@dataclass(frozen=True, slots=True)
class Amount:
    """A whole number, perhaps with a unit or as a product. ``word`` stands for ``None`` where given."""

    noun: str
    minimum: int
    maximum: int
    units: Mapping[str, int] = field(default_factory=dict)
    products: bool = False
    word: str | None = None

    def parse(self, node: Node) -> int | None:
        if not isinstance(node, ScalarNode):
            raise bad(node, self._expected())
        if self.word is not None and node.value == self.word:
            return None
        amount = self._read(node)
        if not self.minimum <= amount <= self.maximum:
            raise BadValue(
                Mistake(node.line, f"{amount} is out of range: {self.noun} is {self.minimum} to {self.maximum}")
            )
        return amount

    def _read(self, node: ScalarNode) -> int:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if not isinstance(value, str):
            hint = f"; write {self.word} for no limit" if value is None and self.word == "none" else ""
            raise bad(node, self._expected(), hint)
        if self.products and _PRODUCT.fullmatch(value):
            return math.prod(int(factor) for factor in value.split("x"))
        with_unit = _NUMBER_WITH_UNIT.fullmatch(value)
        if with_unit is None:
            raise bad(node, self._expected(), nearest(value, [self.word] if self.word else []))
        unit = with_unit["unit"]
        if unit not in self.units:
            raise BadValue(
                Mistake(node.line, f"unit {unit!r} is not one of {self._unit_list()}{self._near_unit(unit)}")
            )
        amount = Fraction(with_unit["number"]) * self.units[unit]
        if amount.denominator != 1:
            raise BadValue(Mistake(node.line, f"{value} is not a whole number"))
        return int(amount)

    def _near_unit(self, unit: str) -> str:
        same = [known for known in self.units if known.lower() == unit.lower()]
        return f"; did you mean {same[0]}?" if same else nearest(unit, self.units)

    def _unit_list(self) -> str:
        return ", ".join(self.units) or "those this key takes (it takes a plain number)"

    def _expected(self) -> str:
        forms = ["a whole number"]
        if self.units:
            forms.append(f"one with a unit ({', '.join(self.units)})")
        if self.products:
            forms.append("a product such as 1280x32x32")
        if self.word is not None:
            forms.append(self.word)
        return " or ".join(forms) if len(forms) < 3 else f"{', '.join(forms[:-1])} or {forms[-1]}"

    def schema(self) -> JsonSchema:
        forms: list[JsonSchema] = [{"type": "integer", "minimum": self.minimum, "maximum": self.maximum}]
        if self.units:
            forms.append({"type": "string", "pattern": rf"^\d+(\.\d+)?\s*({'|'.join(self.units)})$"})
        if self.products:
            forms.append({"type": "string", "pattern": rf"^{_PRODUCT.pattern}$"})
        if self.word is not None:
            forms.append({"const": self.word})
        return forms[0] if len(forms) == 1 else {"anyOf": forms}


@dataclass(frozen=True, slots=True)
class Seconds:
    """A duration in seconds, fractions allowed."""

    maximum: float

    def parse(self, node: Node) -> float:
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise bad(node, "a number of seconds without a unit")
        if not 0 <= value <= self.maximum:  # also false for NaN
            raise BadValue(Mistake(node.line, f"{value} is out of range: 0 to {self.maximum:g} seconds"))
        return float(value)

    def schema(self) -> JsonSchema:
        return {"type": "number", "minimum": 0, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of an enumeration."""

    words: type[StrEnum]
    allowed: tuple[StrEnum, ...] | None = None

    @property
    def names(self) -> list[str]:
        return [word.value for word in (self.allowed or tuple(self.words))]

    def parse(self, node: Node) -> StrEnum:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or value not in self.names:
            raise bad(node, f"one of {', '.join(self.names)}", nearest(str(value), self.names))
        return self.words(value)

    def schema(self) -> JsonSchema:
        return {"enum": list(self.names)}


@dataclass(frozen=True, slots=True)
class ChoiceList:
    """A list of different words of an enumeration, at least one; kept in the enumeration's order."""

    choice: Choice

    def parse(self, node: Node) -> tuple[StrEnum, ...]:
        if not isinstance(node, ListNode) or not node.items:
            raise bad(node, f"a list of {', '.join(self.choice.names)}")
        chosen: set[StrEnum] = set()
        mistakes: list[Mistake] = []
        for index, item in enumerate(node.items):
            try:
                word = self.choice.parse(item)
            except BadValue as error:
                mistakes += [Mistake(mistake.line, mistake.message, str(index)) for mistake in error.mistakes]
                continue
            if word in chosen:
                mistakes.append(Mistake(item.line, f"{word} is listed twice", str(index)))
            chosen.add(word)
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(word for word in self.choice.words if word in chosen)

    def schema(self) -> JsonSchema:
        return {"type": "array", "items": self.choice.schema(), "minItems": 1, "uniqueItems": True}


@dataclass(frozen=True, slots=True)
class Colour:
    """Red, green and blue, 0 to 255 each."""

    def parse(self, node: Node) -> tuple[int, int, int]:
        expected = "three whole numbers from 0 to 255, as in [255, 255, 255]"
        if not isinstance(node, ListNode) or len(node.items) != 3:
            raise bad(node, expected)
        channels: list[int] = []
        for item in node.items:
            value = item.value if isinstance(item, ScalarNode) else None
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
                raise bad(item, expected)
            channels.append(value)
        return (channels[0], channels[1], channels[2])

    def schema(self) -> JsonSchema:
        channel = {"type": "integer", "minimum": 0, "maximum": 255}
        return {"type": "array", "items": channel, "minItems": 3, "maxItems": 3}


@dataclass(frozen=True, slots=True)
class Sizes:
    """A list of different sizes in pixels, as in [448x448, 896x448]; may be empty."""

    def parse(self, node: Node) -> tuple[Size, ...]:
        if not isinstance(node, ListNode):
            raise bad(node, "a list of sizes, as in [448x448, 896x448]")
        sizes: list[Size] = []
        mistakes: list[Mistake] = []
        for index, item in enumerate(node.items):
            value = item.value if isinstance(item, ScalarNode) else None
            given = _SIZE.fullmatch(value) if isinstance(value, str) else None
            if given is None:
                message = f"expected a size such as 448x448, found {kind_of(item)}"
                mistakes.append(Mistake(item.line, message, str(index)))
            elif (size := Size(int(given[1]), int(given[2]))) in sizes:
                mistakes.append(Mistake(item.line, f"{size} is listed twice", str(index)))
            else:
                sizes.append(size)
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(sorted(sizes, key=lambda size: (size.pixels, size.width)))

    def schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": "string", "pattern": f"^{_SIZE.pattern}$"}, "uniqueItems": True}


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where remote images may come from: ``any`` (None), ``none`` (empty) or a list of names and ``*.`` patterns."""

    def parse(self, node: Node) -> tuple[str, ...] | None:
        match node:
            case ScalarNode(value="any"):
                return None
            case ScalarNode(value="none"):
                return ()
            case ListNode(items=items) if items:
                return self._patterns(items)
        raise bad(node, 'any, none or a list of host names such as "*.example.com"')

    def _patterns(self, items: tuple[Node, ...]) -> tuple[str, ...]:
        patterns: list[str] = []
        mistakes: list[Mistake] = []
        for index, item in enumerate(items):
            value = item.value if isinstance(item, ScalarNode) else None
            if not isinstance(value, str) or not _HOST.fullmatch(value):
                hint = "; a lower-case name without scheme, port or path, * only in front as *."
                mistakes.append(Mistake(item.line, f"expected a host name, found {kind_of(item)}{hint}", str(index)))
                continue
            patterns.append(value)
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(sorted(set(patterns)))

    def schema(self) -> JsonSchema:
        names = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        return {"anyOf": [{"enum": ["any", "none"]}, names]}


@dataclass(frozen=True, slots=True)
class Models:
    """Models by name or pattern: ``any`` (None) or a list in which ``*`` stands for any characters."""

    def parse(self, node: Node) -> tuple[str, ...] | None:
        match node:
            case ScalarNode(value="any"):
                return None
            case ListNode(items=items) if items:
                names = [item.value if isinstance(item, ScalarNode) else None for item in items]
                wrong = [
                    Mistake(item.line, f"expected a model's name, found {kind_of(item)}", str(index))
                    for index, (item, name) in enumerate(zip(items, names, strict=True))
                    if not isinstance(name, str) or not name
                ]
                if wrong:
                    raise BadValue(*wrong)
                return tuple(sorted({str(name) for name in names}))
        raise bad(node, "any or a list of models, in whose names * stands for any characters")

    def schema(self) -> JsonSchema:
        names = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
        return {"anyOf": [{"enum": ["any"]}, names]}


@dataclass(frozen=True, slots=True)
class Name:
    """A tenant's or a task's name."""

    def parse(self, node: Node) -> str:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise bad(node, "a name of letters, digits, _ . - (at most 64)")
        return value

    def schema(self) -> JsonSchema:
        return {"type": "string", "pattern": f"^{NAME.pattern}$"}


@dataclass(frozen=True, slots=True)
class Aliases:
    """Names clients may use for models; a name may end in ``@task``."""

    def parse(self, node: Node) -> dict[str, str]:
        if not isinstance(node, MappingNode):
            raise bad(node, "a mapping from alias to served model")
        aliases: dict[str, str] = {}
        mistakes: list[Mistake] = []
        for entry in node.entries:
            value = entry.node.value if isinstance(entry.node, ScalarNode) else None
            if entry.key in aliases:
                mistakes.append(Mistake(entry.line, "this alias is defined twice", entry.key))
            elif not isinstance(value, str) or not value:
                found = f"expected the name of a served model, found {kind_of(entry.node)}"
                mistakes.append(Mistake(entry.node.line, found, entry.key))
            else:
                aliases[entry.key] = value
        if mistakes:
            raise BadValue(*mistakes)
        return aliases

    def schema(self) -> JsonSchema:
        return {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}
