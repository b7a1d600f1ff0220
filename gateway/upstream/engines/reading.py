"""Reading foreign documents without trusting their shape: JSON objects and the Prometheus text format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, TypeGuard

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_LABEL = re.compile(rb'(\w+)="((?:[^"\\]|\\.)*)"')


def json_object(document: bytes | None) -> dict[str, JsonValue]:
    """The document as an object; empty for anything else, broken JSON included."""
    if document is None:
        return {}
    try:
        value: JsonValue = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def inner_object(value: JsonValue) -> dict[str, JsonValue]:
    """A nested object, which some engines print as a string of JSON."""
    if isinstance(value, str):
        return json_object(value.encode("utf-8", "replace"))
    return value if isinstance(value, dict) else {}


def whole(value: JsonValue) -> int | None:
    """A positive whole number; ``True`` and ``"7"`` are none."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value


def counted(value: JsonValue) -> int | None:
    """A whole number that may be 0; ``True`` and negative ones are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def is_measure(value: JsonValue) -> TypeGuard[float]:
    """A finite number that is not negative; ``True`` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def words(value: JsonValue) -> str | None:
    """A string that says something."""
    return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a metric: its labels and value."""

    labels: dict[str, str]
    value: float


@lru_cache(maxsize=64)
def _line_of(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"^" + re.escape(name.encode()) + rb"(?:\{(.*)\})?[ \t]+(\S+)", re.MULTILINE)


def samples(exposition: bytes, name: str) -> Iterator[Sample]:
    """All samples of exactly this metric; lines that are no sample of it are skipped."""
    for match in _line_of(name).finditer(exposition):
        try:
            value = float(match[2])
        except ValueError:
            continue
        pairs = _LABEL.findall(match[1] or b"")
        yield Sample({key.decode(): text.decode("utf-8", "replace") for key, text in pairs}, value)


def _finite(exposition: bytes, name: str) -> list[float]:
    return [sample.value for sample in samples(exposition, name) if math.isfinite(sample.value)]


def total(exposition: bytes, *names: str) -> int | None:
    """The sum over the samples of the first of these names that is there; ``None`` for one beyond all numbers."""
    for name in names:
        values = _finite(exposition, name)
        if values:
            summed = sum(values)
            return max(0, round(summed)) if math.isfinite(summed) else None
    return None


def fullest(exposition: bytes, *names: str) -> float | None:
    """The largest sample of the first of these names that is there, kept within 0..1."""
    for name in names:
        values = _finite(exposition, name)
        if values:
            return min(1.0, max(0.0, *values))
    return None


def model_cards(document: bytes | None) -> list[dict[str, JsonValue]]:
    """The entries of an OpenAI model list."""
    data = json_object(document).get("data")
    if not isinstance(data, list):
        return []
    return [entry for entry in data if isinstance(entry, dict)]
