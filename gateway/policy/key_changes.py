"""What differs between the API keys of two sets of policies: who is let in no more, or anew, or until when.

Decided here: that keys are told by their names and numbers, never by their hashes, and that the last key of all which
goes opens the gateway. Not decided here: how it is shown (the commands), whether signed tokens are asked for as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from gateway.policy.compare import Difference, Shown
from gateway.policy.keys import Key
from gateway.policy.policyset import PolicySet
from gateway.types import TaskName, TenantId

# No tenant can be called so.
EVERYBODY = TenantId("*")
_LAST_MOMENT_S = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def key_changes(old: PolicySet, new: PolicySet) -> Iterator[Difference]:
    """Whether keys are asked for at all (of ``EVERYBODY``), then each tenant's keys; ``task`` and ``model`` are empty.

    ``keys`` is their number; ``keys.<name, or place in the file>.expires`` and the like are of a key that stays.
    """
    if old.has_keys != new.has_keys:
        asked, unasked = "asked for", "no key is asked for any more" if old.has_keys else "none is asked for"
        was, becomes = (asked, unasked) if old.has_keys else (unasked, asked)
        yield _difference(EVERYBODY, "keys", was, becomes, "")
    before, after = _by_tenant(old), _by_tenant(new)
    written = {_key(setting.value).hash: setting.reason for each in new.documents for setting in each.keys}
    for tenant in sorted(before.keys() | after.keys()):
        yield from _of_tenant(tenant, before.get(tenant, {}), after.get(tenant, {}), written)


def _by_tenant(policies: PolicySet) -> dict[TenantId, dict[str, Key]]:
    found: dict[TenantId, dict[str, Key]] = {}
    for key, tenant in policies.keys.values():
        found.setdefault(tenant, {})[key.hash] = key
    return found


def _key(value: object) -> Key:
    assert isinstance(value, Key), "as the list of keys reads it"
    return value


def _of_tenant(
    tenant: TenantId, old: Mapping[str, Key], new: Mapping[str, Key], written: Mapping[str, str]
) -> Iterator[Difference]:
    added, gone = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    if added or gone:
        told = f"{_told(new)} ({added} new, {gone} gone)" if old and new else _told(new)
        yield _difference(tenant, "keys", _told(old), told, next((written[each] for each in new), ""))
    for index, (hashed, key) in enumerate(new.items()):
        if hashed not in old:
            continue
        was, becomes = _facts(old[hashed]), _facts(key)
        for fact, value in becomes.items():
            if was[fact] != value:
                name = f"keys.{key.name or index}.{fact}"
                yield _difference(tenant, name, was[fact], value, written[hashed])


def _told(keys: Mapping[str, Key]) -> str:
    if not keys:
        return "none"
    named = ", ".join(sorted(key.name for key in keys.values() if key.name))
    return f"{len(keys)} {'key' if len(keys) == 1 else 'keys'}" + (f": {named}" if named else "")


def _facts(key: Key) -> dict[str, str]:
    return {"name": key.name or "none", "expires": _moment(key.expires_s), "task": key.task or "none"}


def _moment(expires_s: float | None) -> str:
    """The last day's end is beyond what a date can say."""
    if expires_s is None:
        return "never"
    return datetime.fromtimestamp(min(expires_s, _LAST_MOMENT_S), UTC).isoformat().replace("+00:00", "Z")


def _difference(tenant: TenantId, key: str, old: str, new: str, reason: str) -> Difference:
    return Difference(tenant, TaskName(""), "", key, Shown(old, ""), Shown(new, reason))
