from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from gateway.config.backends import BackendConfig
from gateway.config.reloaded import reloaded, waiting
from gateway.config.settings import ModelConfig, Settings
from gateway.config.sources import leaf_paths

# Of every kind another value than the default's.
_OTHERS: dict[type, Any] = {bool: lambda value: not value, int: lambda value: value + 1, float: lambda value: value + 1}


def changed(path: str) -> Settings:
    """The default settings with one other value."""

    def other(record: Any, steps: list[str]) -> Any:
        step, *rest = steps
        value = getattr(record, step)
        new = other(value, rest) if rest else _OTHERS.get(type(value), lambda _: "another")(value)
        return replace(record, **{step: new})

    found: Settings = other(Settings(), path.split("."))
    return found


@pytest.mark.parametrize("path", leaf_paths())
def test_a_setting_is_taken_over_or_waits_as_it_is_declared(path: str) -> None:
    fresh = changed(path)
    is_reloadable = leaf_paths()[path].metadata["reload"]
    assert reloaded(Settings(), fresh) == (fresh if is_reloadable else Settings())
    assert waiting(Settings(), fresh) == ([] if is_reloadable else [path])


def test_models_are_taken_over_and_backends_wait() -> None:
    fresh = replace(Settings(), models={"m": ModelConfig()}, backends=(BackendConfig(url="http://h"),))
    assert reloaded(Settings(), fresh).models == {"m": ModelConfig()}
    assert waiting(Settings(), fresh) == ["backends"]
    assert not any(each.metadata.get("reload") for each in dataclasses.fields(BackendConfig))
