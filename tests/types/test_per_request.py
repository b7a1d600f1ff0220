"""Values of the hot path: equal and hashed as frozen dataclasses are, and no larger."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from gateway.types import RequestCost


def test_values_are_equal_and_hashed_by_their_fields() -> None:
    cost = RequestCost(10, 5, 3)
    assert cost == RequestCost(10, 5, 3)
    assert len({cost, RequestCost(10, 5, 3), RequestCost(10, 5, 4)}) == 2


def test_another_value_is_made_by_replacing() -> None:
    cost = RequestCost(10, 5, 3)
    assert replace(cost, cached_tokens=7).prefill_tokens == 3
    assert cost.cached_tokens == 0
    assert [each.name for each in fields(cost)][:2] == ["prompt_tokens", "output_tokens"]


def test_there_is_room_for_its_fields_alone() -> None:
    with pytest.raises(AttributeError):
        RequestCost(10, 5, 3).other = 1  # type: ignore[attr-defined]
