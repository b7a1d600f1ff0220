"""The settings that a page names in backticks, and which of them there are not."""

from __future__ import annotations

import dataclasses
import re

from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.settings import ModelConfig, RouteConfig, Settings
from gateway.config.sources import leaf_paths

_SECTIONS = "|".join(field.name for field in dataclasses.fields(Settings) if field.name != "policies")
_NAMED = re.compile(rf"`((?:{_SECTIONS})(?:\.\*)?\.[a-z_]+\*?)")
_ENTRIES = {"backends": BackendConfig, "sources": SourceConfig, "models": ModelConfig, "routes": RouteConfig}


def known_settings() -> set[str]:
    """``server.port``, ``backends.*.url``."""
    entries = {f"{name}.*.{field.name}" for name, cls in _ENTRIES.items() for field in dataclasses.fields(cls)}
    return {*leaf_paths(), *entries, "fetch.static_hosts"}


def unknown_settings(page: str) -> list[str]:
    """Names that mean no setting; ``upstream.eject_*`` means those that begin so."""
    known = known_settings()
    named = set(_NAMED.findall(page))
    assert named
    return sorted(
        name
        for name in named
        if not any(
            each.startswith(name[:-1]) if name.endswith("*") else each in {name, _starred(name)} for each in known
        )
    )


def _starred(name: str) -> str:
    """``backends.max_pixels`` -> ``backends.*.max_pixels``."""
    section, _, rest = name.partition(".")
    return f"{section}.*.{rest}" if section in _ENTRIES and not rest.startswith("*") else name
