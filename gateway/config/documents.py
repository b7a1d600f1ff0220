"""One YAML document as plain values: the format of gateway.yaml, policies apart.

Decided here: how a file is read, that no key may be given twice, and how mistakes of form are told. Not decided here:
what the values mean (``sources``). Imports as little as it can: the probe of a container reads its port with it.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml


class SettingsProblems(Exception):
    """All that is wrong with the settings, one line each, as ``where: what``."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class _UniqueKeys(yaml.SafeLoader):
    """YAML that refuses a key given twice: the second would silently win."""


def _no_duplicates(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _no_duplicates)


def read_document(path: Path) -> object:
    """One YAML file as plain values. Raises SettingsProblems with line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsProblems([f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from error
    return plain_values(text, path)


def plain_values(text: str, path: Path | str) -> object:
    """A YAML document as plain values. Raises SettingsProblems with line and column."""
    try:
        return yaml.load(text, Loader=_UniqueKeys)  # noqa: S506  # a SafeLoader subclass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise SettingsProblems([f"{where}: {error.problem or 'is not YAML'}"]) from error
    except yaml.YAMLError as error:
        raise SettingsProblems([f"{path}: is not YAML: it holds characters YAML does not allow"]) from error
    except RecursionError as error:
        raise SettingsProblems([f"{path}: is nested too deeply"]) from error
    except ValueError as error:  # a date or a number that looks like one and is none
        raise SettingsProblems([f"{path}: holds a value that cannot be read: {error}"]) from error
