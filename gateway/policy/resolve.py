"""Stage *resolve*: tenant x task x model -> one effective policy, every value with the line that decided it.

The task is chosen by the first that speaks: the header ``x-vlmgw-task``, the model alias (``name@task``), the body's
metadata, the deployment's alias for the model, the caller's key or token, the first fitting rule of the tenant's
``choose``, its ``default_task``. A rule's value comes from the most particular place that has it: a tenant's file
before ``default.yaml`` before the built-in default; within a file ``models`` before ``tasks`` before ``rules`` before
its ``profile``; of several matching model patterns the one with more literal characters. None of it depends on the
order of files or keys. A value replaces the inherited one whole, except where its key joins them entry by entry.

Results are memoised in the policy set, whose life ends with the next reload. Model names come from clients, so the
memo is bounded and starts again when full.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.errors import ModelNotFound, NotPermitted
from gateway.policy.choose import Asked, first_fitting
from gateway.policy.effective import EffectivePolicy, Profile
from gateway.policy.node import shortened
from gateway.policy.patterns import matches
from gateway.policy.policyset import BUILTIN_REASON, PolicySet, TenantPolicy
from gateway.policy.profiles import PROFILES
from gateway.policy.profiles.profile import VendorProfile
from gateway.policy.rule import Rule
from gateway.policy.rules import RULES
from gateway.policy.schema import Document, RuleSet, Setting
from gateway.policy.tenant_keys import TENANT_KEYS, TenantKey
from gateway.policy.visible import is_allowed
from gateway.types import TaskName, TenantId

_MEMO_ENTRIES = 4_096
_KEYS: tuple[Rule | TenantKey, ...] = (*RULES, *TENANT_KEYS)
# Any: the registries' values meet the typed fields here; a test compares every kind with its field.
_DEFAULTS: dict[str, Any] = {key.key: key.default for key in _KEYS}
_JOINS = {key.key: key.join for key in _KEYS if key.join is not None}
_BY_HEADER = "header x-vlmgw-task"
_NAMES = frozenset(field.name for field in dataclasses.fields(EffectivePolicy))
# Key -> field of the effective policy; what has none (aliases, the default task) is used up on the way.
_FIELDS = {rule.key: rule.key for rule in RULES} | {key.key: key.field for key in TENANT_KEYS if key.field in _NAMES}


def resolve(
    policies: PolicySet,
    *,
    tenant: TenantId,
    header_task: str | None,
    model: str | None,
    body_task: str | None,
    key_task: TaskName | None = None,
    asked: Asked | None = None,
    needs_model: bool = True,
) -> EffectivePolicy:
    """Find what one request is measured against; without ``asked``, as if no rule of ``choose`` fitted. Not
    ``needs_model``: a request that is about no model.

    Raises NotPermitted for a task the tenant may not ask for, ModelNotFound for a model that is not there for it.
    """
    tenant_policy = policies.tenants.get(tenant)
    if tenant_policy is None:
        raise NotPermitted("This tenant has no policy any more.", rule="tenant")
    chosen = first_fitting(tenant_policy.choose, asked) if asked is not None and tenant_policy.choose else None
    key = (tenant, header_task, model, body_task, key_task, chosen)
    found = policies.resolved.get(key)
    if found is not None:
        return found
    named, alias_task = _follow_alias(tenant_policy, model)
    alias = policies.aliases.get(named or "")
    own_task = None if alias is None or alias.task not in tenant_policy.tasks else alias.task
    wanted = _Wanted(header_task, alias_task, model, body_task, own_task, key_task, chosen)
    task, task_reason = _choose_task(tenant_policy, wanted)
    effective = _resolve(tenant_policy, task, task_reason, named if alias is None else alias.model)
    if not is_allowed(effective.allowed_models, named) and (needs_model or named is not None):
        raise _not_there(model)
    if alias is not None:
        effective = replace(effective, parameters=alias.parameters)
    if len(policies.resolved) >= _MEMO_ENTRIES:
        policies.resolved.clear()
    policies.resolved[key] = effective
    return effective


def resolve_shown(policies: PolicySet, tenant: TenantPolicy, task: TaskName, model: str | None) -> EffectivePolicy:
    """What holds for a task and a model, for people who look: also for models that the tenant may not name, or none."""
    named, _ = _follow_alias(tenant, model)
    alias = policies.aliases.get(named or "")
    return _resolve(tenant, task, _BY_HEADER, named if alias is None else alias.model)


def _follow_alias(tenant: TenantPolicy, model: str | None) -> tuple[str | None, TaskName | None]:
    """The served model, and the task if the client's name for it carries one.

    ``@`` may be part of a real name, so it is split off only before a task that the tenant may ask for.
    """
    if model is None:
        return None, None
    name, _, suffix = model.rpartition("@")
    task = TaskName(suffix) if name and suffix in tenant.tasks else None
    if model in tenant.aliases:
        return tenant.aliases[model], task
    if task is None:
        return model, None
    return tenant.aliases.get(name, name), task


@dataclass(frozen=True, slots=True)
class _Wanted:
    """All that speaks for a task, the stronger first; ``chosen`` is a rule of the tenant's ``choose``."""

    header_task: str | None
    alias_task: TaskName | None
    model: str | None
    body_task: str | None
    model_task: TaskName | None
    key_task: TaskName | None
    chosen: int | None


def _choose_task(tenant: TenantPolicy, wanted: _Wanted) -> tuple[TaskName, str]:
    asked = (wanted.header_task or "").strip()
    if asked:
        return _permitted(tenant, asked), _BY_HEADER
    if wanted.alias_task is not None:
        return wanted.alias_task, f"model alias {shortened(wanted.model or '')}"
    if wanted.body_task:
        return _permitted(tenant, wanted.body_task), "metadata of the body"
    if wanted.model_task is not None:
        return wanted.model_task, f"models.{shortened(wanted.model or '')}.task"
    if wanted.key_task is not None:
        return _permitted(tenant, wanted.key_task), "the caller's key or token"
    if wanted.chosen is not None:
        rule = tenant.choose[wanted.chosen]
        return rule.task, f"{tenant.settings['choose'].file}:{rule.line} choose.{wanted.chosen}"
    default = tenant.settings["default_task"]
    return TaskName(str(default.value)), f"default_task: {default.reason}"


def _not_there(model: str | None) -> ModelNotFound:
    """In the words for a model that nobody serves, so that none can tell which of the others there are."""
    if model is None:
        return ModelNotFound("The request names no model.", part="model")
    return ModelNotFound(f"The model {model[:128]!r} is not served here.", part="model")


def _permitted(tenant: TenantPolicy, task: str) -> TaskName:
    if task not in tenant.tasks:
        allowed = ", ".join(tenant.tasks)
        raise NotPermitted(f"Task {shortened(task)!r} is not among those allowed here: {allowed}.", rule="tasks")
    return TaskName(task)


def _resolve(tenant: TenantPolicy, task: TaskName, task_reason: str, model: str | None) -> EffectivePolicy:
    values = dict(_DEFAULTS)
    reasons = dict.fromkeys(values, BUILTIN_REASON)
    for rule_set in _rule_sets(tenant, task, model):
        for key, setting in rule_set.items():
            join = _JOINS.get(key)
            values[key] = setting.value if join is None else join(values[key], setting.value)
            reasons[key] = setting.reason
    fields = {field: values[key] for key, field in _FIELDS.items()}
    return EffectivePolicy(
        **fields,
        tenant=tenant.tenant,
        task=task,
        task_reason=task_reason,
        model=model,
        reasons=reasons,
        policy_version=_version(fields),
    )


def _rule_sets(tenant: TenantPolicy, task: TaskName, model: str | None) -> Iterator[RuleSet]:
    """Everything that applies, the more particular later. A profile lies below the file that names it."""
    profile, at = _profile(tenant, task)
    for document in tenant.layers:
        if document is at and profile is not None:
            yield profile
        yield document.settings
        yield document.rules
        yield document.tasks.get(task, {})
        matching = [pattern for pattern in document.models if model is not None and matches(pattern, model)]
        for pattern in sorted(matching, key=lambda pattern: (len(pattern.replace("*", "")), pattern)):
            yield document.models[pattern]


def _profile(tenant: TenantPolicy, task: TaskName) -> tuple[RuleSet | None, Document | None]:
    """The values of the profile in force, and the file above them: the most particular one that names a profile."""
    for document in reversed(tenant.layers):
        named = document.tasks.get(task, {}).get("profile") or document.settings.get("profile")
        if named is not None:
            found = PROFILES.get(Profile(str(named.value)))
            return (None if found is None else _layer(found, named)), document
    return None, None


def _layer(profile: VendorProfile, named: Setting) -> RuleSet:
    reason = f"profile {profile.name} ({named.reason})"
    return {key: replace(named, value=value, path=key, reason=reason) for key, value in profile.rules.items()}


def _version(values: Mapping[str, object]) -> str:
    """A short hash of all values in a fixed order; reasons and names are left out."""
    return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:12]
