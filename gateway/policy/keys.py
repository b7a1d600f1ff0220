"""What a policy file says of its API keys: how each is stored, whose task it has, until when it holds.

Decided here: spelling of key entries. Not decided here: how a presented key is compared with them (`api.auth`). Two
forms of storage: ``sha256:`` for keys that a machine made (256 random bits, which nobody finds by search), and
``hmac-sha256:`` under the deployment's secret for all others: without that secret, which lies elsewhere, a stolen
policy file is no list to try words against. A slow hash such as argon2 would bring no more for random keys, and would
let every stranger's request burn the gateway's CPU.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.policy.node import Entry, ListNode, MappingNode, Node, ScalarNode, kind_of, nearest
from gateway.policy.values import NAME, BadValue, JsonSchema, Mistake, bad
from gateway.types import TaskName, TenantId
from gateway.types.per_request import per_request

HASH = re.compile(r"(?:sha256|hmac-sha256):[0-9a-f]{64}")
_FIELDS = ("hash", "name", "expires", "task")
_IN_THE_CLEAR = (
    "expected sha256: or hmac-sha256: and 64 lower-case hex digits; keys are never written in the clear, "
    "`vlm-gateway hash-key` makes the hash"
)
_OF_NOTHING = f"sha256:{hashlib.sha256().hexdigest()}"
_A_MOMENT = "expected a date (2027-01-31) or a moment with its zone (2027-01-31T18:00:00Z)"


@dataclass(frozen=True, slots=True)
class Key:
    """One accepted key. ``expires_s`` in seconds since 1970; ``task`` is what its holder gets without asking."""

    hash: str
    name: str | None = None
    expires_s: float | None = None
    task: TaskName | None = None

    @property
    def needs_secret(self) -> bool:
        return self.hash.startswith("hmac-")


@per_request(frozen=True, slots=True)
class Caller:
    """Who calls: the tenant, and what its key says."""

    tenant: TenantId
    key: str | None = None
    task: TaskName | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """A list of keys, each a hash or an object with one."""

    def parse(self, node: Node) -> tuple[Key, ...]:
        if not isinstance(node, ListNode):
            raise bad(node, 'a list of key hashes, as in ["sha256:<64 hex digits>"]')
        keys: list[Key] = []
        mistakes: list[Mistake] = []
        for index, item in enumerate(node.items):
            try:
                keys.append(_key(item))
            except BadValue as error:
                for mistake in error.mistakes:
                    part = f"{index}.{mistake.part}" if mistake.part else str(index)
                    mistakes.append(Mistake(mistake.line, mistake.message, part))
        if mistakes:
            raise BadValue(*mistakes)
        return tuple(keys)

    def schema(self) -> JsonSchema:
        hashed = {"type": "string", "pattern": f"^{HASH.pattern}$"}
        members = {
            "hash": hashed,
            "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
            "expires": {"type": "string"},
            "task": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        }
        entry = {"type": "object", "properties": members, "required": ["hash"], "additionalProperties": False}
        return {"type": "array", "items": {"anyOf": [hashed, entry]}}


def _key(node: Node) -> Key:
    if not isinstance(node, MappingNode):
        return Key(_hash(node))
    mistakes: list[Mistake] = []
    found: dict[str, Entry] = {}
    for entry in node.entries:
        if entry.key not in _FIELDS:
            mistakes.append(Mistake(entry.line, f"unknown key{nearest(entry.key, _FIELDS)}", entry.key))
        elif entry.key in found:
            mistakes.append(Mistake(entry.line, "given twice", entry.key))
        found[entry.key] = entry
    if "hash" not in found:
        mistakes.append(Mistake(node.line, "a key needs its hash", "hash"))
    values: dict[str, object] = {}
    for field, read in _READERS.items():
        if field in found:
            try:
                values[field] = read(found[field].node)
            except BadValue as error:
                mistakes += [Mistake(mistake.line, mistake.message, field) for mistake in error.mistakes]
    if mistakes:
        raise BadValue(*mistakes)
    return Key(**{_MEMBERS[field]: value for field, value in values.items()})  # type: ignore[arg-type] # by _READERS


def _text(node: Node) -> str | None:
    return node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else None


def _hash(node: Node) -> str:
    """A key in the clear is refused without being repeated in the message."""
    value = _text(node)
    if value is None or not HASH.fullmatch(value):
        raise BadValue(Mistake(node.line, _IN_THE_CLEAR))
    if value == _OF_NOTHING:
        raise BadValue(Mistake(node.line, "is the hash of an empty key, which no request can present"))
    return value


def _name(node: Node) -> str:
    value = _text(node)
    if value is None or not NAME.fullmatch(value):
        raise BadValue(Mistake(node.line, f"a name has letters, digits, _ . - only, found {kind_of(node)}"))
    return value


def _moment(node: Node) -> float:
    """A date holds until its end, in UTC."""
    value = _text(node)
    if value is None:
        raise BadValue(Mistake(node.line, _A_MOMENT))
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise BadValue(Mistake(node.line, _A_MOMENT)) from None
    if len(value) <= len("2027-01-31"):
        return moment.replace(tzinfo=UTC).timestamp() + 86_400
    if moment.tzinfo is None:
        raise BadValue(Mistake(node.line, _A_MOMENT))
    return moment.timestamp()


_READERS: dict[str, Callable[[Node], object]] = {"hash": _hash, "name": _name, "expires": _moment, "task": _name}
_MEMBERS = {"hash": "hash", "name": "name", "expires": "expires_s", "task": "task"}
