"""Where settings come from: defaults < gateway.yaml < ``VLMGW_*`` environment < flags; every problem at once.

Decided here: how a document becomes ``Settings`` and how mistakes are told. Not decided here: which settings exist.
A setting ``server.port`` is ``VLMGW_SERVER_PORT`` in the environment; lists of text are comma-separated there.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import json
import math
import os
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.config.advice import secret_problems
from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.documents import SettingsProblems, read_document
from gateway.config.fleet_problems import backend_problems, name_of, source_problems
from gateway.config.listener import listener_problems
from gateway.config.routes import route_problems
from gateway.config.settings import Settings
from gateway.config.store_address import redis_problems, shared_cache_problems
from gateway.config.tracing import tracing_problems
from gateway.policy.values import BYTE_UNITS

_WITH_UNIT = re.compile(r"^\s*(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Z]+)\s*$")
_LARGEST = 2**63  # beyond it nothing is a size, a time or a count
ENVIRONMENT_PREFIX = "VLMGW_"
# Names with our prefix that are no settings: the admin port's token, and the key the command line calls with.
OTHER_NAMES = frozenset({"VLMGW_ADMIN_TOKEN", "VLMGW_KEY"})


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(cls: type[Any]) -> dict[str, Any]:
    """Evaluated once: a file may hold a thousand backends."""
    found = _HINTS.get(cls)
    if found is None:
        found = _HINTS[cls] = typing.get_type_hints(cls)
    return found


class Reader:
    """Reads plain values into settings records and gathers what is wrong, each with its place below ``origin``."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.problems: list[str] = []

    def say(self, path: str, what: str) -> None:
        self.problems.append(f"{self.origin}: {path or 'document'}: {what}")

    def record(self, cls: type[Any], raw: object, path: str, base: Any) -> Any:
        """Read a mapping into a settings dataclass, starting from ``base``."""
        if raw is None:
            return base
        if not isinstance(raw, dict):
            self.say(path, f"must be a mapping, not {_kind(raw)}")
            return base
        hints = _hints(cls)
        fields = {f.name: f for f in dataclasses.fields(cls)}
        changes: dict[str, Any] = {}
        for key, value in raw.items():
            here = f"{path}.{key}" if path else str(key)
            if key not in fields:
                near = difflib.get_close_matches(str(key), fields, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(fields)}"
                self.say(here, f"unknown setting{hint}")
                continue
            found = self.value(hints[key], value, here, fields[key].metadata, getattr(base, key))
            if found is not _BAD:
                changes[key] = found
        return dataclasses.replace(base, **changes)

    def value(self, hint: Any, raw: object, path: str, metadata: Mapping[str, Any], current: object) -> Any:
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self.record(hint, raw, path, current)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            if raw is None:
                return None
            inner = next(a for a in arguments if a is not type(None))
            return self.value(inner, raw, path, metadata, current)
        if origin is tuple:
            return self.sequence(arguments[0], raw, path, metadata)
        if origin is dict:
            return self.json(raw, path) if arguments[1] is object else self.mapping(arguments[1], raw, path)
        return self.scalar(hint, raw, path, metadata)

    def sequence(self, item: Any, raw: object, path: str, metadata: Mapping[str, Any]) -> Any:
        if isinstance(raw, str) and item is str:
            raw = [part.strip() for part in raw.split(",") if part.strip()]
        if not isinstance(raw, list):
            self.say(path, f"must be a list, not {_kind(raw)}")
            return _BAD
        if item in _NAMED_BY_URL:
            raw = [{"url": entry} if isinstance(entry, str) else entry for entry in raw]
        made = []
        for index, entry in enumerate(raw):
            here = f"{path}.{index}"
            base = _blank(item)
            made.append(self.value(item, entry, here, metadata, base))
        return _BAD if any(entry is _BAD for entry in made) else tuple(made)

    def mapping(self, item: Any, raw: object, path: str) -> Any:
        if not isinstance(raw, dict):
            self.say(path, f"must be a mapping, not {_kind(raw)}")
            return _BAD
        made: dict[str, Any] = {}
        for key, entry in raw.items():
            base = _blank(item)
            made[str(key)] = self.value(item, entry, f"{path}.{key}", {}, base)
        return _BAD if any(entry is _BAD for entry in made.values()) else made

    def json(self, raw: object, path: str) -> Any:
        """A mapping that goes into requests as it stands, so that all of it must be sayable in JSON."""
        try:
            json.dumps(raw, allow_nan=False)
        except (TypeError, ValueError):
            self.say(path, "must be sayable in JSON: text, whole and other numbers, true, false, null, lists, mappings")
            return _BAD
        return self.mapping(None, raw, path) if not isinstance(raw, dict) else {str(key): raw[key] for key in raw}

    def scalar(self, hint: Any, raw: object, path: str, metadata: Mapping[str, Any]) -> Any:
        found = _coerce(hint, raw, str(metadata.get("unit", "")))
        if found is _BAD:
            unit = metadata.get("unit")
            given = _kind(raw) if metadata.get("secret") else repr(raw)
            self.say(path, f"must be {_WORDS[hint]}{f' ({unit})' if unit else ''}, not {given}{_near_unit(raw, unit)}")
            return _BAD
        minimum, maximum, choices = (metadata.get(k) for k in ("minimum", "maximum", "choices"))
        if choices and found not in choices:
            near = difflib.get_close_matches(str(found), choices, n=1)
            self.say(path, f"must be one of {', '.join(choices)}" + (f"; did you mean {near[0]}?" if near else ""))
            return _BAD
        if (minimum is not None and found < minimum) or (maximum is not None and found > maximum):
            bounds = f"at least {minimum:g}" if maximum is None else f"between {minimum:g} and {maximum:g}"
            self.say(path, f"must be {bounds}, not {raw!r}")
            return _BAD
        return found


def _near_unit(raw: object, unit: object) -> str:
    """A hint at the unit that was probably meant."""
    written = _WITH_UNIT.match(raw) if isinstance(raw, str) and unit == "bytes" else None
    if written is None or written[2] in BYTE_UNITS:
        return ""
    same = [known for known in BYTE_UNITS if known.lower() == written[2].lower()]
    units = f"; units are {', '.join(BYTE_UNITS)}"
    return units + (f"; did you mean {' or '.join(same)}?" if same else "")


def _blank(item: Any) -> Any:
    return item() if dataclasses.is_dataclass(item) and isinstance(item, type) else None


_BAD: Any = object()
_NAMED_BY_URL = (BackendConfig, SourceConfig)
_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _kind(raw: object) -> str:
    return (
        "nothing"
        if raw is None
        else {"str": "text", "dict": "a mapping", "list": "a list"}.get(type(raw).__name__, type(raw).__name__)
    )


def _coerce(hint: Any, raw: object, unit: str) -> Any:
    if hint is bool:
        if isinstance(raw, str) and raw.lower() in ("true", "false", "1", "0", "yes", "no"):
            return raw.lower() in ("true", "1", "yes")
        return raw if isinstance(raw, bool) else _BAD
    if isinstance(raw, bool):
        return _BAD
    if hint is str:
        return raw if isinstance(raw, str) else _BAD
    if isinstance(raw, str):
        return _number(hint, raw, unit)
    if not isinstance(raw, int | float) or not abs(raw) < _LARGEST:  # nan is not below anything
        return _BAD
    if hint is int:
        return int(raw) if raw == int(raw) else _BAD
    return float(raw)


def _number(hint: Any, raw: str, unit: str) -> Any:
    if unit == "pixels" and re.fullmatch(r"\d{1,9}(x\d{1,9}){1,4}", raw):
        return math.prod(int(side) for side in raw.split("x"))
    try:
        value = hint(raw)
        return value if abs(value) < _LARGEST else _BAD
    except ValueError:
        found = _WITH_UNIT.match(raw)
    if not found:
        return _BAD
    number, suffix = float(found[1]), found[2]
    # As in policies: 64Mb could be bits, and 64mib anything; a unit is written as it is meant.
    if unit == "bytes" and suffix in BYTE_UNITS:
        return int(number * BYTE_UNITS[suffix])
    if unit == "s" and suffix in ("s", "ms"):
        return hint(number if suffix == "s" else number / 1000)
    return _BAD


def environment_name(path: str) -> str:
    """``server.max_body_bytes`` -> ``VLMGW_SERVER_MAX_BODY_BYTES``."""
    return ENVIRONMENT_PREFIX + path.upper().replace(".", "_")


def leaf_paths(cls: type[Any] = Settings, prefix: str = "") -> dict[str, dataclasses.Field[Any]]:
    """Every scalar or list-of-text setting by dotted path: what environment and flags can set."""
    hints = typing.get_type_hints(cls)
    found: dict[str, dataclasses.Field[Any]] = {}
    for f in dataclasses.fields(cls):
        hint, path = hints[f.name], f"{prefix}{f.name}"
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found |= leaf_paths(hint, f"{path}.")
        elif typing.get_origin(hint) is not dict:
            found[path] = f
    return found


def _nest(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        at = tree
        *parents, last = path.split(".")
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return tree


def _from_environment(environment: Mapping[str, str], reader: Reader) -> dict[str, Any]:
    names = {environment_name(path): path for path in leaf_paths()}
    flat: dict[str, object] = {}
    if environment.get("VLMGW_ADMIN_TOKEN") == "":
        reader.problems.append(
            "environment: VLMGW_ADMIN_TOKEN: is empty, as anybody could guess; give one or leave it out"
        )
    for name, value in environment.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in OTHER_NAMES:
            continue
        if name in names:
            is_list = names[name] in ("backends", "sources")
            flat[names[name]] = [p.strip() for p in value.split(",") if p.strip()] if is_list else value
            continue
        near = difflib.get_close_matches(name, names, n=1)
        reader.problems.append(f"environment: {name}: unknown setting" + (f"; did you mean {near[0]}?" if near else ""))
    return _nest(flat)


def load_settings(
    path: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Put the settings together. ``flags`` are dotted paths with values that were given on the command line.

    Raises SettingsProblems with every problem found. Relative policy directories are relative to the file.
    """
    settings: Settings = Settings()
    problems: list[str] = []
    if path is not None:
        reader = Reader(str(path))
        settings = reader.record(Settings, read_document(path), "", settings)
        if settings.policies is not None:
            settings = dataclasses.replace(settings, policies=str(path.parent / settings.policies))
        settings = dataclasses.replace(settings, sources=tuple(each.below(path.parent) for each in settings.sources))
        problems += reader.problems
    reader = Reader("environment")
    tree = _from_environment(os.environ if environment is None else environment, reader)
    settings = reader.record(Settings, tree, "", settings)
    problems += reader.problems
    reader = Reader("flags")
    settings = reader.record(Settings, _nest(flags or {}), "", settings)
    problems += reader.problems
    problems += _consistency(settings)
    if problems:
        raise SettingsProblems(problems)
    return settings


def _consistency(settings: Settings) -> list[str]:
    """What only several settings together, or a value's inside, can be wrong about."""
    problems = backend_problems(settings.backends, "settings: backends")
    problems += source_problems(settings.sources)
    problems += listener_problems(settings.server)
    problems += tracing_problems(settings.tracing)
    names = frozenset(name_of(each) for each in settings.backends)
    problems += route_problems(settings.routes, None if settings.sources else names)
    if settings.server.port and settings.server.port == settings.server.admin_port:
        problems.append("settings: server.admin_port: must differ from server.port")
    if settings.server.processes > 1 and settings.upstream.kv_events_listen is not None:
        problems.append("settings: upstream.kv_events_listen: only one of server.processes can listen there")
    if settings.media.slab_bytes < settings.server.max_body_bytes:
        problems.append("settings: media.slab_bytes: must hold at least one body of server.max_body_bytes")
    problems += secret_problems(settings.identity)
    for network in settings.fetch.public_networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            problems.append(f"settings: fetch.public_networks: {error}")
    problems += shared_cache_problems(settings.media, settings.redis, settings.identity)
    return problems + redis_problems(settings.redis)


def masked(settings: Any) -> dict[str, Any]:
    """The settings as plain values with every secret replaced, for people and the admin port."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            return {
                f.name: "***" if f.metadata.get("secret") and getattr(value, f.name) else plain(getattr(value, f.name))
                for f in dataclasses.fields(value)
            }
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, tuple):
            return [plain(entry) for entry in value]
        return value

    found: dict[str, Any] = plain(settings)
    return found
