"""The nouns together: nobody can change what another has read."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import gateway.types as nouns


@pytest.mark.parametrize(
    "noun", [value for _, value in inspect.getmembers(nouns, dataclasses.is_dataclass) if inspect.isclass(value)]
)
def test_nouns_are_frozen_and_slotted(noun: type) -> None:
    assert vars(noun)["__dataclass_params__"].frozen
    assert "__slots__" in vars(noun)
