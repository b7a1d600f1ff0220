"""The compose file as data: anchors resolved, variables put in as with an empty environment.

Decided here: what the text says to compose. Not decided here: what of it is right (the tests), how it is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.docker.dockerfile import ROOT

COMPOSE = ROOT / "docker/compose.yaml"
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def plain_document(path: Path = COMPOSE) -> dict[str, Any]:
    """As it is written, anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def services(environment: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Each service with its variables put in."""
    found: dict[str, dict[str, Any]] = _filled(plain_document()["services"], environment or {})
    return found


def seconds(text: str) -> float:
    """``90s``, ``2m``, ``1m30s``."""
    parts = re.findall(r"(\d+)(ms|s|m|h)", text)
    assert "".join(map("".join, parts)) == text, text
    return sum(int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)


def _filled(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: environment.get(match[1]) or match[2] or "", value)
    if isinstance(value, list):
        return [_filled(entry, environment) for entry in value]
    if isinstance(value, dict):
        return {key: _filled(entry, environment) for key, entry in value.items()}
    return value
