"""The list of rules ``choose``: which task a request is that names none itself, by what it looks like.

Decided here: what a rule can ask of a request, and that the first rule of which everything fits wins. Pure, and told
with its line like every other choice. Not decided here: what comes before it (header, alias, metadata) and after it
(``default_task``): `resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gateway.policy.mappings import below, entries_once
from gateway.policy.node import Entry, ListNode, MappingNode, Node, ScalarNode, kind_of, nearest, shortened
from gateway.policy.patterns import matches
from gateway.policy.values import Amount, BadValue, JsonSchema, Mistake, Name, bad
from gateway.types import TaskName
from gateway.types.per_request import per_request

_HEADER = re.compile(r"[a-z0-9-]{1,128}")
_COUNT = Amount("images", 0, 10_000)
_PATTERNS = ("model", "path", "user")
_KEYS = ("task", *_PATTERNS, "headers", "min_images", "max_images", "has_tools")


@per_request(frozen=True, slots=True)
class Asked:
    """What rules may look at: the request's path, its headers by lower-case name, and what its body holds."""

    path: str
    header: Callable[[str], str | None]
    model: str | None
    user: str | None
    image_count: int
    has_tools: bool


@dataclass(frozen=True, slots=True)
class ChooseRule:
    """One rule; what is ``None`` or empty asks nothing. Patterns are of `patterns`; ``headers`` by lower-case name."""

    task: TaskName
    line: int
    model: str | None = None
    path: str | None = None
    user: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    min_images: int | None = None
    max_images: int | None = None
    has_tools: bool | None = None

    def __str__(self) -> str:
        asks = {name: getattr(self, name) for name in (*_PATTERNS, "min_images", "max_images", "has_tools")}
        asks["headers"] = dict(self.headers) or None
        told = ", ".join(f"{name}: {value}" for name, value in asks.items() if value is not None)
        return f"{self.task} for {told or 'all others'}"

    def fits(self, asked: Asked) -> bool:
        """Whether everything that the rule asks is so."""
        if self.min_images is not None and asked.image_count < self.min_images:
            return False
        if self.max_images is not None and asked.image_count > self.max_images:
            return False
        if self.has_tools is not None and asked.has_tools is not self.has_tools:
            return False
        names = ((self.model, asked.model), (self.path, asked.path), (self.user, asked.user))
        if not all(pattern is None or (name is not None and matches(pattern, name)) for pattern, name in names):
            return False
        sent = ((pattern, asked.header(name)) for name, pattern in self.headers)
        return all(value is not None and matches(pattern, value) for pattern, value in sent)


def first_fitting(rules: tuple[ChooseRule, ...], asked: Asked) -> int | None:
    """The index of the first rule that fits."""
    return next((index for index, rule in enumerate(rules) if rule.fits(asked)), None)


@dataclass(frozen=True, slots=True)
class ChooseRules:
    """A list of rules, as in ``[{task: ocr, path: /v1/messages, min_images: 4}]``."""

    def parse(self, node: Node) -> tuple[ChooseRule, ...]:
        if not isinstance(node, ListNode):
            raise bad(node, "a list of rules, as in [{task: ocr, min_images: 4}]")
        rules: list[ChooseRule] = []
        mistakes: list[Mistake] = []
        for index, item in enumerate(node.items):
            found: list[Mistake] = []
            rule = _rule(item, found)
            mistakes += [Mistake(each.line, each.message, _path(index, each.part)) for each in found]
            if rule is not None:
                rules.append(rule)
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(rules)

    def schema(self) -> JsonSchema:
        text: JsonSchema = {"type": "string", "minLength": 1}
        headers = {"type": "object", "patternProperties": {f"^{_HEADER.pattern}$": text}, "additionalProperties": False}
        each: JsonSchema = {"task": Name().schema(), **dict.fromkeys(_PATTERNS, text), "headers": headers}
        each |= {"min_images": _COUNT.schema(), "max_images": _COUNT.schema(), "has_tools": {"type": "boolean"}}
        rule = {"type": "object", "properties": each, "additionalProperties": False, "required": ["task"]}
        return {"type": "array", "items": rule}


def _path(index: int, part: str) -> str:
    return f"{index}.{part}" if part else str(index)


def _rule(node: Node, mistakes: list[Mistake]) -> ChooseRule | None:
    if not isinstance(node, MappingNode):
        mistakes.append(Mistake(node.line, f"expected a rule such as {{task: ocr}}, found {kind_of(node)}"))
        return None
    values: dict[str, object] = {}
    for entry in entries_once(node, mistakes):
        if entry.key not in _KEYS:
            key = shortened(entry.key)
            mistakes.append(Mistake(entry.line, f"unknown key{nearest(key, _KEYS)}", key))
            continue
        try:
            values[entry.key] = _value(entry)
        except BadValue as error:
            mistakes += below(entry, error)
    if "task" not in values:
        if not any(entry.key == "task" for entry in node.entries):
            mistakes.append(Mistake(node.line, "a rule names the task it chooses", "task"))
        return None
    least, most = values.get("min_images"), values.get("max_images")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        mistakes.append(Mistake(node.line, f"min_images {least} is above max_images {most}: no request fits this rule"))
        return None
    return ChooseRule(line=node.line, **values)  # type: ignore[arg-type]  # each key's value was read by its own kind


def _value(entry: Entry) -> object:
    match entry.key:
        case "task":
            return TaskName(Name().parse(entry.node))
        case "headers":
            return _headers(entry.node)
        case "min_images" | "max_images":
            return _COUNT.parse(entry.node)
        case "has_tools":
            return _flag(entry.node)
    return _pattern(entry.node)


def _flag(node: Node) -> bool:
    if isinstance(node, ScalarNode) and isinstance(node.value, bool):
        return node.value
    raise bad(node, "true or false")


def _pattern(node: Node) -> str:
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and node.value:
        return node.value
    raise bad(node, "a name, in which * stands for any characters")


def _headers(node: Node) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, MappingNode):
        raise bad(node, "a mapping from header to value, as in {x-team: scans}")
    headers: list[tuple[str, str]] = []
    mistakes: list[Mistake] = []
    for entry in entries_once(node, mistakes):
        if not _HEADER.fullmatch(entry.key):
            mistakes.append(Mistake(entry.line, "a header's name is written in lower case", shortened(entry.key)))
            continue
        try:
            headers.append((entry.key, _pattern(entry.node)))
        except BadValue as error:
            mistakes += below(entry, error)
    if mistakes:
        raise BadValue(*mistakes)
    return tuple(sorted(headers))
