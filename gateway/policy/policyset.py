"""All policy documents together: cross-checked once, immutable afterwards, swapped as a whole on a reload.

Decided here: who exists (tenants, keys, tasks), what a tenant inherits, and mistakes that only several files show.
The built-in default lies below every file and equals the engine's own behaviour; ``default.yaml`` (the file without
``tenant``) lies below every tenant's file. Tasks: a tenant may ask for those its own file lists, else those of
``default.yaml``, else the built-in five. Not decided here: one request's policy (`resolve`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gateway.policy.choose import ChooseRule
from gateway.policy.effective import EffectivePolicy
from gateway.policy.keys import Key
from gateway.policy.node import Problem, nearest
from gateway.policy.schema import Document, Setting
from gateway.policy.tenant_keys import TENANT_KEYS
from gateway.policy.visible import ModelAlias
from gateway.types import TaskName, TenantId

# Whoever calls while no keys are configured, and whoever holds a key of default.yaml.
DEFAULT_TENANT = TenantId("default")
BUILTIN_TASKS = tuple(TaskName(name) for name in ("chat", "ocr", "document", "grounding", "classify"))
BUILTIN_REASON = "built-in default"

CacheKey = tuple[TenantId, str | None, str | None, str | None, TaskName | None, int | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """One tenant's view: its layers from general to particular and its tenant-wide settings, inheritance applied."""

    tenant: TenantId
    layers: tuple[Document, ...]
    settings: Mapping[str, Setting]
    tasks: tuple[TaskName, ...]
    aliases: Mapping[str, str]
    choose: tuple[ChooseRule, ...] = ()

    def value(self, key: str, kind: type[T]) -> T:
        """A tenant-wide value, checked against the type its reader expects."""
        value = self.settings[key].value
        if not isinstance(value, kind):
            raise TypeError(f"{key} holds {type(value).__name__}, not {kind.__name__}")
        return value


@dataclass(frozen=True, slots=True)
class PolicySet:
    """One complete snapshot. ``aliases`` are the whole deployment's names for models.

    ``resolved`` memoises what `resolve` found; it is no part of the set's value.
    """

    documents: tuple[Document, ...]
    tenants: Mapping[TenantId, TenantPolicy]
    keys: Mapping[str, tuple[Key, TenantId]]
    aliases: Mapping[str, ModelAlias] = field(default_factory=dict)
    resolved: dict[CacheKey, EffectivePolicy] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_keys(self) -> bool:
        """Whether callers must present a key."""
        return bool(self.keys)


def build_policy_set(documents: Iterable[Document]) -> tuple[PolicySet, tuple[Problem, ...]]:
    """Combine documents. The set may be used only when there are no problems. Order of documents does not matter."""
    ordered = tuple(sorted(documents, key=lambda document: document.file))
    problems = [*_double_documents(ordered), *_double_keys(ordered)]
    shared = next((document for document in ordered if document.tenant is None), None)
    below = (shared,) if shared else ()
    tenants = {DEFAULT_TENANT: _tenant_policy(DEFAULT_TENANT, below)}
    keys: dict[str, tuple[Key, TenantId]] = {}
    for document in ordered:
        tenant = document.tenant or DEFAULT_TENANT
        if document.tenant is not None:
            tenants[tenant] = _tenant_policy(tenant, (*below, document))
        keys |= {key.hash: (key, tenant) for key in map(_key_of, document.keys)}
    for tenant_policy in tenants.values():
        problems += _task_problems(tenant_policy)
    unique = sorted(set(problems), key=lambda problem: (problem.file, problem.line, problem.path, problem.message))
    return PolicySet(ordered, tenants, keys), tuple(unique)


def builtin_policies() -> PolicySet:
    """The policy of a gateway without any file: what the engine itself would do, with generous safety limits."""
    policies, _ = build_policy_set(())
    return policies


def _tenant_policy(tenant: TenantId, layers: tuple[Document, ...]) -> TenantPolicy:
    settings = {key.key: Setting(key.default, "", 0, key.key, BUILTIN_REASON) for key in TENANT_KEYS}
    aliases: dict[str, str] = {}
    tasks = BUILTIN_TASKS
    for layer in layers:
        settings.update(layer.settings)
        found = layer.settings.get("model_aliases")
        if found is not None and isinstance(found.value, dict):
            aliases.update(found.value)
        if layer.tasks:
            tasks = tuple(sorted(layer.tasks))
    choose = settings["choose"].value
    assert isinstance(choose, tuple), "as its kind reads it"
    return TenantPolicy(tenant, layers, settings, tasks, aliases, choose)


def _double_documents(documents: tuple[Document, ...]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[TenantId | None, str] = {}
    for document in documents:
        if document.tenant == DEFAULT_TENANT:
            problems.append(Problem(document.file, 1, "tenant", "this name is reserved for the file without tenant"))
        elif document.tenant in seen:
            what = f"tenant {document.tenant} has" if document.tenant else "everybody (no tenant) has"
            problems.append(Problem(document.file, 1, "tenant", f"{what} a file already: {seen[document.tenant]}"))
        seen.setdefault(document.tenant, document.file)
    return problems


def _key_of(setting: Setting) -> Key:
    assert isinstance(setting.value, Key), "as its kind reads it"
    return setting.value


def _double_keys(documents: tuple[Document, ...]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[str, Setting] = {}
    for setting in (setting for document in documents for setting in document.keys):
        key_hash = _key_of(setting).hash
        if key_hash in seen:
            message = f"{key_hash[:15]}... is listed already in {seen[key_hash].reason}"
            problems.append(Problem(setting.file, setting.line, "keys", message))
        seen.setdefault(key_hash, setting)
    return problems


def _task_problems(tenant: TenantPolicy) -> list[Problem]:
    """The default task and the tasks of aliases must be among those the tenant may ask for."""
    problems: list[Problem] = []
    allowed = ", ".join(tenant.tasks)
    default = tenant.settings["default_task"]
    if default.value not in tenant.tasks:
        if default.file and (not tenant.layers or default.file == tenant.layers[-1].file):
            file, line = default.file, default.line
            message = f"{default.value} is not among the tasks {allowed}{nearest(str(default.value), tenant.tasks)}"
        else:
            file, line = tenant.layers[-1].file, 1
            message = f"not set, and {default.value} ({default.reason}) is not among the tasks {allowed}"
        problems.append(Problem(file, line, "default_task", message))
    problems += _choose_problems(tenant, allowed)
    problems += _key_problems(tenant, allowed)
    for layer in tenant.layers[-1:]:
        found = layer.settings.get("model_aliases")
        for alias in found.value if found is not None and isinstance(found.value, dict) else ():
            task = alias.rpartition("@")[2] if "@" in alias else None
            if found is not None and task is not None and task not in tenant.tasks:
                message = f"task {task} is not among the tasks {allowed}{nearest(task, tenant.tasks)}"
                problems.append(Problem(found.file, found.line, f"{found.path}.{alias}", message))
        problems += _alias_target_problems(tenant, found)
    return problems


def _alias_target_problems(tenant: TenantPolicy, found: Setting | None) -> list[Problem]:
    """A task behind the model's name would be taken for a part of that name, and nobody serves such a model."""
    if found is None or not isinstance(found.value, dict):
        return []
    return [
        Problem(
            found.file,
            found.line,
            f"{found.path}.{alias}",
            f"the task stands behind the alias: write '{alias.rpartition('@')[0] or alias}@{task}: {model}'",
        )
        for alias, (model, at, task) in ((alias, target.rpartition("@")) for alias, target in found.value.items())
        if at and model and task in tenant.tasks
    ]


def _key_problems(tenant: TenantPolicy, allowed: str) -> list[Problem]:
    """What a key's holder gets without asking must be among what the tenant may ask for."""
    return [
        Problem(
            setting.file,
            setting.line,
            "keys",
            f"task {task} is not among the tasks {allowed}{nearest(task, tenant.tasks)}",
        )
        for layer in tenant.layers[-1:]  # its own file; that of the default tenant is default.yaml
        for setting in layer.keys
        if (task := _key_of(setting).task) is not None and task not in tenant.tasks
    ]


def _choose_problems(tenant: TenantPolicy, allowed: str) -> list[Problem]:
    """Each rule chooses a task the tenant may ask for; an inherited list is reported with the file that narrows it."""
    setting = tenant.settings["choose"]
    problems: list[Problem] = []
    for index, rule in enumerate(tenant.choose):
        if rule.task in tenant.tasks:
            continue
        message = f"task {rule.task} is not among the tasks {allowed}{nearest(rule.task, tenant.tasks)}"
        if setting.file == tenant.layers[-1].file:
            problems.append(Problem(setting.file, rule.line, f"choose.{index}.task", message))
        else:
            place = f"{setting.file}:{rule.line} chooses a task that is not here: {message}"
            problems.append(Problem(tenant.layers[-1].file, 1, "choose", place))
    return problems
