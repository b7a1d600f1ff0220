"""Reading a model's configuration files field by field, with the field's name in every complaint.

Decided here: what counts as a number, a list, a section. Not decided here: what the fields mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

# No real configuration comes near; a larger number is a mistake or an attack on the arithmetic behind it.
_MOST = 10**12


class ConfigProblem(ValueError):
    """A configuration file cannot be used; the message names file and field."""


@dataclass(frozen=True, slots=True)
class Section:
    """One object of a configuration file. ``place`` is its name for people: ``config.json: text_config``."""

    place: str
    fields: Mapping[str, Any]

    def named(self, name: str) -> str:
        """A field's full name."""
        return f"{self.place}.{name}" if ": " in self.place else f"{self.place}: {name}"

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.fields.get(name) is not None

    def whole(self, *names: str, least: int = 1) -> int | None:
        """The first of several spellings of a whole number; ``None`` where none is given."""
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, float) and isfinite(value) and value == int(value):
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
                raise ConfigProblem(f"{self.named(name)}: must be a whole number of at least {least}, not {value!r}")
            return value
        return None

    def needed(self, *names: str, least: int = 1) -> int:
        """The same, where there must be one."""
        value = self.whole(*names, least=least)
        if value is None:
            raise ConfigProblem(f"{self.named(names[0])}: is missing")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """A truth value."""
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigProblem(f"{self.named(name)}: must be true or false, not {value!r}")
        return value

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise ConfigProblem(f"{self.named(name)}: must be a string, not {value!r}")
        return value

    def needed_text(self, name: str) -> str:
        """The same, where there must be one."""
        value = self.text(name)
        if not value:
            raise ConfigProblem(f"{self.named(name)}: is missing")
        return value

    def words(self, name: str) -> tuple[str, ...] | None:
        """A list of strings."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise ConfigProblem(f"{self.named(name)}: must be a list of strings")
        return tuple(value)

    def wholes(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers of at least 0."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(entry) is int and 0 <= entry <= _MOST for entry in value):
            raise ConfigProblem(f"{self.named(name)}: must be a list of whole numbers")
        return tuple(value)

    def section(self, name: str) -> Section | None:
        """An object inside this one."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigProblem(f"{self.named(name)}: must be an object, not {value!r}")
        return Section(self.named(name), value)


def read_json(file: str, text: str | bytes) -> Section:
    """A configuration file as a section. Raises `ConfigProblem` where it is not an object of JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigProblem(f"{file}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigProblem(f"{file}: must hold an object")
    return Section(file, value)
