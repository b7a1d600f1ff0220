"""Single members of a request's body, read alike in every dialect.

Decided here: which values are too misshapen to go on, and that null for an optional member is the same as its absence.
Not decided here: which members a dialect has.
"""

from __future__ import annotations

from gateway.errors import InvalidRequest
from gateway.types import Json, JsonObject

# Counts above this mean the same here: more than any engine grants. What is forwarded is the client's own spelling.
_MOST_COUNTED = 1_000_000_000


def model(tree: JsonObject) -> str | None:
    """The model's name. Raises InvalidRequest."""
    name = tree.get("model")
    if name is not None and not isinstance(name, str):
        raise InvalidRequest("A model is named by a short string.", part="model")
    return name


def flag(tree: JsonObject, name: str) -> bool:
    """A truth value, ``False`` when absent. Raises InvalidRequest."""
    value = tree.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequest("true or false is expected.", part=name)
    return value is True


def count(tree: JsonObject, name: str, *, at_least: int) -> int | None:
    """A whole number. Raises InvalidRequest."""
    value = tree.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise InvalidRequest(f"A whole number of at least {at_least} is expected.", part=name)
    return min(value, _MOST_COUNTED)


def task(metadata: Json) -> str | None:
    """The task a client names where it cannot set a header; ``metadata.task`` is the client's own affair."""
    return string(metadata.get("vlmgw_task")) if isinstance(metadata, dict) else None


def string(value: Json) -> str | None:
    """A short string; everything else is as good as absent."""
    return value if isinstance(value, str) else None


def engine_fields(members: JsonObject, known: frozenset[str]) -> list[str]:
    """Which of these members are engine-internal (``foreign``)."""
    return [key for key in members if key in known and members[key] is not None]
