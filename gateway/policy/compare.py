"""Every effective policy of a set, and what differs between two sets.

Decided here: which combinations there are (tenant x task, and each pattern of ``models`` where it changes anything) and
that two values are the same when they are written alike. Not decided here: how they are shown (the commands).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.policy.policyset import PolicySet, TenantPolicy
from gateway.policy.resolve import resolve_shown
from gateway.policy.shown import plain
from gateway.types import TaskName, TenantId

Place = tuple[TenantId, TaskName, str]  # the last is a pattern of models; empty: a model that fits none


@dataclass(frozen=True, slots=True)
class Shown:
    """One value as a file would write it, and what decided it."""

    value: object
    reason: str


@dataclass(frozen=True, slots=True)
class Effective:
    """One effective policy in full. ``task_reason`` is why a request that says nothing gets its task."""

    tenant: TenantId
    task: TaskName
    model: str
    mode: str
    version: str
    values: dict[str, Shown]


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is another one in the new set; ``None`` where the tenant or the task is in one set only."""

    tenant: TenantId
    task: TaskName
    model: str
    key: str
    old: Shown | None
    new: Shown | None


def effective_policies(policies: PolicySet) -> Iterator[Effective]:
    """Every tenant and task, in the order of their names; and again for each pattern of models that changes a value."""
    for _, tenant_policy in sorted(policies.tenants.items()):
        patterns = sorted({pattern for layer in tenant_policy.layers for pattern in layer.models})
        for task in tenant_policy.tasks:
            plain_one = _effective(policies, tenant_policy, task, "")
            yield plain_one
            for pattern in patterns:
                found = _effective(policies, tenant_policy, task, pattern)
                if found.values != plain_one.values:
                    yield found


def _effective(policies: PolicySet, tenant: TenantPolicy, task: TaskName, pattern: str) -> Effective:
    # A star fits the empty text too, so a pattern without its stars is a name that it fits.
    model = pattern.replace("*", "") if pattern else None
    policy = resolve_shown(policies, tenant, task, model)
    values = {}
    for key, reason in policy.reasons.items():
        name = key.rpartition(".")[2]
        own = getattr(policy, name) if hasattr(policy, name) else tenant.settings[key].value
        values[key] = Shown(plain(own), reason)
    values["model_aliases"] = Shown(plain(dict(tenant.aliases)), policy.reasons["model_aliases"])
    return Effective(tenant.tenant, task, pattern, policy.mode.value, policy.policy_version, values)


def differences(old: PolicySet, new: PolicySet) -> Iterator[Difference]:
    """What is another value in the new set, by tenant, task and key; a place that only one set has comes as one."""
    before = {(each.tenant, each.task, each.model): each for each in effective_policies(old)}
    after = {(each.tenant, each.task, each.model): each for each in effective_policies(new)}
    for place in sorted(before.keys() | after.keys()):
        one, other = _of(before, place), _of(after, place)
        if one is None or other is None:
            there = one or other
            mode = None if there is None else there.values["mode"]
            yield Difference(*place, "", mode if other is None else None, mode if one is None else None)
            continue
        for key in [*one.values, *(key for key in other.values if key not in one.values)]:
            was, becomes = one.values.get(key), other.values.get(key)
            if (was and was.value) != (becomes and becomes.value):
                yield Difference(*place, key, was, becomes)


def _of(found: dict[Place, Effective], place: Place) -> Effective | None:
    """A pattern that one set does not have is compared with what that set says of other models."""
    return found.get(place) or (found.get((place[0], place[1], "")) if place[2] else None)
