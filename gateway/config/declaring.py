"""How one setting is declared: a dataclass field that carries its help, bounds and unit.

Decided here: what is said of a setting beside its type. Not decided here: which settings there are (``settings``).
"""

from __future__ import annotations

from dataclasses import field
from typing import Any


def setting(
    default: Any,  # a dataclass default may be of any type; the annotation beside it is checked instead
    help_text: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    unit: str = "",
    secret: bool = False,
    reload: bool = False,
) -> Any:
    """Declare one setting. ``unit`` is ``bytes``, ``s``, ``pixels`` or ``tokens`` and is shown in the docs."""
    metadata = {
        "help": help_text,
        "minimum": minimum,
        "maximum": maximum,
        "choices": choices,
        "unit": unit,
        "secret": secret,
        "reload": reload,
    }
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)
