"""Kinds of values that may be one word for all or a mapping with an answer for each: actions, fields, levels, steps.

Decided here: how they are spelled, and how what a file says is laid over what it inherits: entry by entry, so that a
tenant that changes one of them need not repeat the others. Not decided here: what any of them does (`rules`, `check`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.policy.effective import EngineFields, Excess, FieldAction, OnExcess
from gateway.policy.node import Entry, MappingNode, Node, ScalarNode, kind_of, nearest, shortened
from gateway.policy.values import Amount, BadValue, Choice, JsonSchema, Mistake, bad
from gateway.types.foreign import ENGINE_FIELDS

# The rules above which more can be done than to refuse, and what.
EXCESS_ACTIONS: Mapping[str, tuple[Excess, ...]] = {
    "max_images": (Excess.DROP_OLDEST, Excess.REJECT),
    "max_side": (Excess.SHRINK, Excess.REJECT),
    "max_pixels": (Excess.SHRINK, Excess.REJECT),
    "max_total_pixels": (Excess.SHRINK, Excess.DROP_OLDEST, Excess.REJECT),
    "max_image_tokens": (Excess.SHRINK, Excess.DROP_OLDEST, Excess.REJECT),
    "max_video_tokens": (Excess.SHRINK, Excess.REJECT),
}
_OTHERS = "others"
_IGNORE = "ignore"
_COUNT = re.compile(r"[1-9]\d{0,5}")


def entries_once(node: MappingNode, mistakes: list[Mistake]) -> Iterator[Entry]:
    """Entries, each key once; what is written twice becomes a mistake."""
    first_lines: dict[str, int] = {}
    for entry in node.entries:
        if entry.key in first_lines:
            message = f"the key is written twice, first in line {first_lines[entry.key]}"
            mistakes.append(Mistake(entry.line, message, entry.key))
            continue
        first_lines[entry.key] = entry.line
        yield entry


def unknown_entry(entry: Entry, known: Mapping[str, object] | list[str]) -> Mistake:
    """The mistake of a key that is not among those known, with the nearest of them."""
    key = shortened(entry.key)
    return Mistake(entry.line, f"unknown key{nearest(key, known)}", key)


def below(entry: Entry, error: BadValue) -> list[Mistake]:
    """The mistakes of an entry's value, as parts of the whole."""
    return [
        Mistake(mistake.line, mistake.message, f"{entry.key}.{mistake.part}" if mistake.part else entry.key)
        for mistake in error.mistakes
    ]


@dataclass(frozen=True, slots=True)
class ActionsByRule:
    """``on_excess``: a word for every rule that knows it, or a word for each rule by name."""

    def parse(self, node: Node) -> dict[str, Excess]:
        if not isinstance(node, MappingNode):
            word = Excess(Choice(Excess).parse(node))
            return {rule: word for rule, known in EXCESS_ACTIONS.items() if word in known}
        actions: dict[str, Excess] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            known = EXCESS_ACTIONS.get(entry.key)
            if known is None:
                mistakes.append(unknown_entry(entry, EXCESS_ACTIONS))
                continue
            try:
                actions[entry.key] = Excess(Choice(Excess, known).parse(entry.node))
            except BadValue as error:
                mistakes += below(entry, error)
        if mistakes:
            raise BadValue(*mistakes)
        return actions

    def schema(self) -> JsonSchema:
        each = {rule: {"enum": [action.value for action in known]} for rule, known in EXCESS_ACTIONS.items()}
        mapping = {"type": "object", "properties": each, "additionalProperties": False}
        return {"anyOf": [Choice(Excess).schema(), mapping]}


def joined_actions(inherited: OnExcess, written: Mapping[str, Excess]) -> OnExcess:
    """The actions with those replaced that a file names."""
    return replace(inherited, **written)


@dataclass(frozen=True, slots=True)
class ActionsByField:
    """``engine_fields``: a word for all fields, or a word for each by name and for all ``others``."""

    def parse(self, node: Node) -> EngineFields | dict[str, FieldAction]:
        words = Choice(FieldAction)
        if not isinstance(node, MappingNode):
            return EngineFields(FieldAction(words.parse(node)))
        actions: dict[str, FieldAction] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            if entry.key != _OTHERS and entry.key not in ENGINE_FIELDS:
                mistakes.append(unknown_entry(entry, [_OTHERS, *sorted(ENGINE_FIELDS)]))
                continue
            try:
                actions[entry.key] = FieldAction(words.parse(entry.node))
            except BadValue as error:
                mistakes += below(entry, error)
        if mistakes:
            raise BadValue(*mistakes)
        return actions

    def schema(self) -> JsonSchema:
        word = Choice(FieldAction).schema()
        each = dict.fromkeys([_OTHERS, *sorted(ENGINE_FIELDS)], word)
        return {"anyOf": [word, {"type": "object", "properties": each, "additionalProperties": False}]}


def joined_fields(inherited: EngineFields, written: EngineFields | Mapping[str, FieldAction]) -> EngineFields:
    """A word replaces everything; a mapping replaces what it names."""
    if isinstance(written, EngineFields):
        return written
    named = dict(inherited.named) | {name: action for name, action in written.items() if name != _OTHERS}
    return EngineFields(written.get(_OTHERS, inherited.others), tuple(sorted(named.items())))


@dataclass(frozen=True, slots=True)
class AmountsByWord:
    """A mapping from words of an enumeration to amounts, such as ``{low: 512x512, high: engine}``, or ``ignore``."""

    words: type[StrEnum]
    amount: Amount

    def parse(self, node: Node) -> dict[str, int | None] | None:
        names = [word.value for word in self.words]
        if isinstance(node, ScalarNode) and node.value == _IGNORE:
            return None
        if not isinstance(node, MappingNode):
            raise bad(node, f"{_IGNORE} or a mapping with some of {', '.join(names)}")
        amounts: dict[str, int | None] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            if entry.key not in names:
                mistakes.append(unknown_entry(entry, names))
                continue
            try:
                amounts[entry.key] = self.amount.parse(entry.node)
            except BadValue as error:
                mistakes += below(entry, error)
        if mistakes:
            raise BadValue(*mistakes)
        return amounts

    def schema(self) -> JsonSchema:
        each = {word.value: self.amount.schema() for word in self.words}
        return {"anyOf": [{"const": _IGNORE}, {"type": "object", "properties": each, "additionalProperties": False}]}


def joined_amounts(
    inherited: tuple[tuple[str, int | None], ...], written: Mapping[str, int | None] | None
) -> tuple[tuple[str, int | None], ...]:
    """The amounts with those replaced that a file names, in the order of their words; ``None`` forgets all."""
    if written is None:
        return ()
    return tuple(sorted((dict(inherited) | dict(written)).items()))


@dataclass(frozen=True, slots=True)
class Steps:
    """An amount that depends on how many images a request has: a number, or ``{1: 8000, 21: 2000}``.

    Each key is the number of images from which on its amount holds; below the first, nothing does.
    """

    amount: Amount

    def parse(self, node: Node) -> tuple[tuple[int, int], ...]:
        if not isinstance(node, MappingNode):
            single = self.amount.parse(node)
            return () if single is None else ((1, single),)
        steps: dict[int, int] = {}
        mistakes: list[Mistake] = []
        for entry in entries_once(node, mistakes):
            if not _COUNT.fullmatch(entry.key):
                message = f"expected a number of images from which on this holds, found {shortened(entry.key)!r}"
                mistakes.append(Mistake(entry.line, message, shortened(entry.key)))
                continue
            try:
                value = replace(self.amount, word=None).parse(entry.node)
            except BadValue as error:
                mistakes += below(entry, error)
                continue
            assert value is not None, "without a word there is always a number"
            steps[int(entry.key)] = value
        if not node.entries:
            raise BadValue(Mistake(node.line, f"expected at least one step, found {kind_of(node)} without any"))
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(sorted(steps.items()))

    def schema(self) -> JsonSchema:
        each = replace(self.amount, word=None).schema()
        mapping = {
            "type": "object",
            "patternProperties": {f"^{_COUNT.pattern}$": each},
            "additionalProperties": False,
            "minProperties": 1,
        }
        return {"anyOf": [self.amount.schema(), mapping]}


def step_at(steps: tuple[tuple[int, int], ...], image_count: int) -> int | None:
    """The amount that holds for a request of so many images; ``None`` where none does."""
    found: int | None = None
    for from_images, amount in steps:
        if image_count < from_images:
            break
        found = amount
    return found
