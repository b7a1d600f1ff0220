"""Reading JSON of unknown shape: the aliases and the narrow look-ups that the contract modules share.

Nothing here decides what is wrong with a request; a look-up of the wrong type simply gives the default.
"""

from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]


def text(value: Json, default: str = "") -> str:
    """The value when it is a string."""
    return value if isinstance(value, str) else default


def flag(value: Json, *, default: bool = False) -> bool:
    """The value when it is a boolean."""
    return value if isinstance(value, bool) else default


def integer(value: Json) -> int | None:
    """The value as an integer, None when it is none (booleans are not integers here)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def number(value: Json) -> float | None:
    """The value as a float, None when it is no number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def mapping(value: Json) -> Mapping[str, Json]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Json) -> list[Json]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def texts(value: Json) -> tuple[str, ...]:
    """A string or a list of strings, as `stop` may be."""
    if isinstance(value, str):
        return (value,)
    return tuple(entry for entry in sequence(value) if isinstance(entry, str))
