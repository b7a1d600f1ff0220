"""What a policy file may say: from a tree of nodes to a typed document, with every mistake reported at once.

Decided here: the keys of a file, which of them nest, and the wording of mistakes. Not decided here: the keys below
``rules`` (`rules`), spelling and units of values (`values`), how documents combine (`policyset`, `resolve`), how YAML
is read (`config.policies`). Mistakes that need several files are found by `policyset`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.policy.effective import CacheSalt, EngineFields, Mode
from gateway.policy.node import Entry, MappingNode, Node, Problem, ScalarNode, kind_of, nearest, shortened
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.values import NAME, Aliases, Amount, BadValue, Choice, Hosts, KeyHashes, Kind, Name, Seconds
from gateway.types import TaskName, TenantId


@dataclass(frozen=True, slots=True)
class TenantKey:
    """One key that holds for a tenant as a whole, whatever the task."""

    key: str
    summary: str
    kind: Kind
    default: object


TENANT_KEYS: tuple[TenantKey, ...] = (
    TenantKey("mode", "`shadow` reports what would be done and does nothing.", Choice(Mode), Mode.ENFORCE),
    TenantKey("default_task", "The task of requests that name none.", Name(), "chat"),
    TenantKey("model_aliases", "Names for models; `name@task` chooses the task as well.", Aliases(), {}),
    TenantKey(
        "kv_tokens_in_flight",
        "KV tokens (prompt and reserved output) of all requests that run at one time.",
        Amount("kv_tokens_in_flight", 1, 10**12, word="none"),
        None,
    ),
    TenantKey("queue_timeout_s", "Seconds a request may wait for the budget before 429.", Seconds(600), 10.0),
    TenantKey("hosts", "Hosts from which images may be fetched.", Hosts(), None),
    TenantKey("isolation.cache_salt", "Who shares an engine's prefix cache.", Choice(CacheSalt), CacheSalt.NONE),
    TenantKey("engine_fields", "Engine-internal fields in the body.", Choice(EngineFields), EngineFields.STRIP),
)

_TENANT_KEYS = {tenant_key.key: tenant_key for tenant_key in TENANT_KEYS}
_SECTIONS = ("rules", "tasks", "models", "isolation")
TOP_KEYS = ("tenant", "keys", *(key for key in _TENANT_KEYS if "." not in key), *_SECTIONS)


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
                case key if key in _TENANT_KEYS and "." not in key:
                    setting = self._value(_TENANT_KEYS[key].kind, entry, key)
                    settings.update({key: setting} if setting else {})
                case _:
                    self._unknown(entry, "", TOP_KEYS)
        named_tasks = {TaskName(name): rule_set for name, rule_set in tasks.items()}
        return Document(self.file, tenant, keys, settings, rules, named_tasks, models)

    def _keys(self, entry: Entry) -> tuple[Setting, ...]:
        found = self._value(KeyHashes(), entry, "keys")
        if found is None or not isinstance(found.value, tuple):
            return ()
        return tuple(self._setting(key_hash, entry.line, "keys") for key_hash in found.value)

    def _isolation(self, node: Node) -> dict[str, Setting]:
        settings: dict[str, Setting] = {}
        for entry in self._entries(node, "isolation"):
            path = f"isolation.{entry.key}"
            if path not in _TENANT_KEYS:
                self._unknown(entry, "isolation", ["cache_salt"])
                continue
            setting = self._value(_TENANT_KEYS[path].kind, entry, path)
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
        rule_set: dict[str, Setting] = {}
        for entry in self._entries(node, path):
            rule = RULES_BY_KEY.get(entry.key)
            if rule is None:
                self._unknown(entry, path, RULES_BY_KEY)
                continue
            setting = self._value(rule.kind, entry, f"{path}.{entry.key}")
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
            hint = "; it belongs at the top of the file"
        else:
            hint = nearest(entry.key, known)
        self._report(entry.line, full, f"unknown key{hint}")

    def _report(self, line: int, path: str, message: str) -> None:
        self.problems.append(Problem(self.file, line, path, message))
