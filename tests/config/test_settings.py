"""The one list of settings: every setting explained, bounded, and its default within its own bounds."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.config.backends import BackendConfig
from gateway.config.declaring import setting
from gateway.config.settings import ModelConfig, Settings
from gateway.config.sources import leaf_paths

SCALARS = {int, float, bool, str}


def every_setting() -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    """Each scalar or list with its path and type, those of backends and models too."""
    for cls, prefix in ((Settings, ""), (BackendConfig, "backends.0."), (ModelConfig, "models.m.")):
        for path, field in leaf_paths(cls, prefix).items():
            owner = (
                cls if cls is not Settings or "." not in path else typing.get_type_hints(Settings)[path.split(".")[0]]
            )
            yield path, field, typing.get_type_hints(owner)[field.name]


ALL = {path: (field, hint) for path, field, hint in every_setting()}


@pytest.mark.parametrize("path", ALL)
def test_every_setting_says_what_it_is(path: str) -> None:
    field, _ = ALL[path]
    assert re.fullmatch(r"[A-Z].*[.]", field.metadata["help"])
    assert field.metadata["unit"] in {"", "bytes", "s", "pixels", "tokens"}


@pytest.mark.parametrize("path", ALL)
def test_names_carry_their_unit(path: str) -> None:
    field, _ = ALL[path]
    unit = field.metadata["unit"]
    if unit:
        assert path.endswith(f"_{unit}")
    else:
        assert not re.search(r"(?<!_per)_(bytes|s|pixels|tokens)$", path)


@pytest.mark.parametrize("path", ALL)
def test_a_default_lies_within_its_own_bounds(path: str) -> None:
    field, hint = ALL[path]
    if field.default is None:
        assert type(None) in typing.get_args(hint)
        return
    if isinstance(field.default, int | float):
        assert field.metadata["minimum"] is None or field.default >= field.metadata["minimum"]
        assert field.metadata["maximum"] is None or field.default <= field.metadata["maximum"]
    if field.metadata["choices"]:
        assert field.default in field.metadata["choices"]


@pytest.mark.parametrize("path", ALL)
def test_numbers_are_bounded_below(path: str) -> None:
    field, hint = ALL[path]
    kinds = {hint, *typing.get_args(hint)} - {type(None)}
    if kinds & {int, float} and bool not in kinds:
        assert field.metadata["minimum"] is not None


def test_what_is_secret_is_said_to_be() -> None:
    secret = {path for path, (field, _) in ALL.items() if field.metadata["secret"]}
    assert secret == {
        path
        for path in ALL
        if re.search(r"secret|api_key|token$|password$|redis[.]url|cache_url|tracing[.]headers", path)
    }


def test_a_default_that_could_be_changed_is_made_anew() -> None:
    first, second = Settings(), Settings()
    assert first == second
    assert first.models is not second.models
    assert setting((), "x").default == ()


def test_a_gateway_listens_on_this_machine_only_unless_told() -> None:
    assert (Settings().server.host, Settings().server.admin_host) == ("127.0.0.1", "127.0.0.1")
