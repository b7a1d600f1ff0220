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
    parameters = vars(noun)["__dataclass_params__"]
    assert parameters.frozen or parameters.unsafe_hash, "what is made `per_request` is frozen for mypy, and hashed"
    assert "__slots__" in vars(noun)
