"""The form of an example for a check: one subject that passes and one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """A wanted value with what satisfies it and what does not; ``rest`` are keys read by the same check."""

    wanted: Any
    good: Any
    bad: Any
    rest: Mapping[str, Any] | None = None
