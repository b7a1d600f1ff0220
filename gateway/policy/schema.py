"""What a policy file may say: from a tree of nodes to a typed document, with every mistake reported at once.

Decided here: the keys of a file, which of them nest, and the wording of mistakes. Not decided here: the keys below
``rules`` (`rules`), spelling and units of values (`values`), how documents combine (`policyset`, `resolve`), how YAML
is read (`config.policies`). Mistakes that need several files are found by `policyset`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.policy.keys import Keys
from gateway.policy.node import Entry, MappingNode, Node, Problem, ScalarNode, kind_of, nearest, shortened
from gateway.policy.rule import Rule
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.tenant_keys import KEYS_BY_NAME, TENANT_KEYS, TenantKey
from gateway.policy.values import NAME, BadValue, Kind, Name
from gateway.types import TaskName, TenantId

# What a task may set for itself beside the rules.
TASK_KEYS = {key.key: key for key in TENANT_KEYS if key.in_tasks}
_OF_TASKS: Mapping[str, Rule | TenantKey] = {**RULES_BY_KEY, **TASK_KEYS}
_SECTIONS = ("rules", "tasks", "models", "isolation")
TOP_KEYS = ("tenant", "keys", *(key for key in KEYS_BY_NAME if "." not in key), *_SECTIONS)


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it was written; ``reason`` reads ``policies/acme.yaml:12 tasks.ocr.max_pixels``."""

    value: object
    file: str
    line: int
    path: str
    reason: str


RuleSet = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Document:
    """One file. ``tenant`` None: it is inherited by everybody. Holds what was written, nothing is filled in."""

    file: str
    tenant: TenantId | None = None
    keys: tuple[Setting, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    rules: RuleSet = field(default_factory=dict)
    tasks: Mapping[TaskName, RuleSet] = field(default_factory=dict)
    models: Mapping[str, RuleSet] = field(default_factory=dict)


def parse_document(root: Node, file: str) -> tuple[Document, tuple[Problem, ...]]:
    """Read one file. With problems the document holds what could be read, good for finding further ones only."""
    reader = _Reader(file)
    document = reader.document(root)
    return document, tuple(sorted(reader.problems, key=lambda problem: problem.line))


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def document(self, root: Node) -> Document:
        if isinstance(root, ScalarNode) and root.value is None:
            return Document(self.file)
        settings: dict[str, Setting] = {}
        tenant: TenantId | None = None
        keys: tuple[Setting, ...] = ()
        rules: RuleSet = {}
        tasks: dict[str, RuleSet] = {}
        models: dict[str, RuleSet] = {}
        for entry in self._entries(root, ""):
            match entry.key:
                case "tenant":
                    name = self._value(Name(), entry, "tenant")
                    tenant = TenantId(str(name.value)) if name else None
                case "keys":
                    keys = self._keys(entry)
                case "rules":
                    rules = self._rules(entry.node, "rules")
                case "tasks":
                    tasks = self._named_rules(entry.node, "tasks")
                case "models":
                    models = self._named_rules(entry.node, "models")
                case "isolation":
                    settings.update(self._isolation(entry.node))
                case key if key in KEYS_BY_NAME and "." not in key:
                    setting = self._value(KEYS_BY_NAME[key].kind, entry, key)
                    settings.update({key: setting} if setting else {})
                case _:
                    self._unknown(entry, "", TOP_KEYS)
        named_tasks = {TaskName(name): rule_set for name, rule_set in tasks.items()}
        return Document(self.file, tenant, keys, settings, rules, named_tasks, models)

    def _keys(self, entry: Entry) -> tuple[Setting, ...]:
        found = self._value(Keys(), entry, "keys")
        if found is None or not isinstance(found.value, tuple):
            return ()
        return tuple(self._setting(key, entry.line, "keys") for key in found.value)

    def _isolation(self, node: Node) -> dict[str, Setting]:
        settings: dict[str, Setting] = {}
        for entry in self._entries(node, "isolation"):
            path = f"isolation.{entry.key}"
            if path not in KEYS_BY_NAME:
                self._unknown(
                    entry, "isolation", [key.field for key in KEYS_BY_NAME.values() if key.key.startswith("isolation.")]
                )
                continue
            setting = self._value(KEYS_BY_NAME[path].kind, entry, path)
            settings.update({path: setting} if setting else {})
        return settings

    def _named_rules(self, node: Node, section: str) -> dict[str, RuleSet]:
        named: dict[str, RuleSet] = {}
        for entry in self._entries(node, section):
            path = f"{section}.{entry.key}"
            if section == "tasks" and not NAME.fullmatch(entry.key):
                self._report(entry.line, path, "a task's name has letters, digits, _ . - only (at most 64)")
            nothing = isinstance(entry.node, ScalarNode) and entry.node.value is None
            named[entry.key] = {} if nothing else self._rules(entry.node, path)
        return named

    def _rules(self, node: Node, path: str) -> RuleSet:
        keys: Mapping[str, Rule | TenantKey] = _OF_TASKS if path.startswith("tasks.") else RULES_BY_KEY
        rule_set: dict[str, Setting] = {}
        for entry in self._entries(node, path):
            known = keys.get(entry.key)
            if known is None:
                self._unknown(entry, path, keys)
                continue
            setting = self._value(known.kind, entry, f"{path}.{entry.key}")
            rule_set.update({entry.key: setting} if setting else {})
        return rule_set

    def _value(self, kind: Kind, entry: Entry, path: str) -> Setting | None:
        try:
            value = kind.parse(entry.node)
        except BadValue as error:
            for mistake in error.mistakes:
                self._report(mistake.line, f"{path}.{mistake.part}" if mistake.part else path, mistake.message)
            return None
        return self._setting(value, entry.line, path)

    def _setting(self, value: object, line: int, path: str) -> Setting:
        return Setting(value, self.file, line, path, f"{self.file}:{line} {path}")

    def _entries(self, node: Node, path: str) -> Iterator[Entry]:
        """The entries of a mapping, each key once; a key written again is reported with both lines."""
        if not isinstance(node, MappingNode):
            self._report(node.line, path, f"expected a mapping, found {kind_of(node)}")
            return
        first_lines: dict[str, int] = {}
        for entry in node.entries:
            if entry.key in first_lines:
                full = f"{path}.{entry.key}" if path else entry.key
                self._report(entry.line, full, f"the key is written twice, first in line {first_lines[entry.key]}")
                continue
            first_lines[entry.key] = entry.line
            yield entry

    def _unknown(self, entry: Entry, path: str, known: Mapping[str, object] | tuple[str, ...] | list[str]) -> None:
        key = shortened(entry.key)
        full = f"{path}.{key}" if path else key
        if not path and entry.key in RULES_BY_KEY:
            hint = "; it belongs below rules, tasks.* or models.*"
        elif path and entry.key in TOP_KEYS:
            hint = f"; it belongs at the top of the file{' or below tasks.*' if entry.key in TASK_KEYS else ''}"
        else:
            hint = nearest(entry.key, known)
        self._report(entry.line, full, f"unknown key{hint}")

    def _report(self, line: int, path: str, message: str) -> None:
        self.problems.append(Problem(self.file, line, path, message))
