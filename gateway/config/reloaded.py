"""What of fresh settings may take effect while the process runs: those that are declared so, wherever they stand.

Decided here: how two records become one, and which differences wait for a restart. Not decided here: when settings are
read anew (``assembly.reloading``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from gateway.config.settings import Settings


def reloaded(current: Settings, fresh: Settings) -> Settings:
    """``current`` with every setting of ``fresh`` that is marked ``reload``."""
    found: Settings = _joined(current, fresh)
    return found


def waiting(current: Settings, fresh: Settings) -> list[str]:
    """The settings, by name, that are others in ``fresh`` and take effect at the next start only."""
    return list(_differing(reloaded(current, fresh), fresh, ""))


def _joined(current: Any, fresh: Any) -> Any:
    """Any: settings records of every section alike."""
    changes = {}
    for field in dataclasses.fields(current):
        now, then = getattr(current, field.name), getattr(fresh, field.name)
        if field.metadata.get("reload"):
            changes[field.name] = then
        elif dataclasses.is_dataclass(now):
            changes[field.name] = _joined(now, then)
    return dataclasses.replace(current, **changes)


def _differing(current: Any, fresh: Any, prefix: str) -> Iterator[str]:
    for field in dataclasses.fields(current):
        now, then = getattr(current, field.name), getattr(fresh, field.name)
        if now == then:
            continue
        if dataclasses.is_dataclass(now):
            yield from _differing(now, then, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"
