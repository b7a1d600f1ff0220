from __future__ import annotations

from enum import StrEnum

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.effective import EngineFields, FieldAction
from gateway.policy.mappings import ActionsByField, ActionsByRule, AmountsByWord, Steps, joined_fields, step_at
from gateway.policy.values import Amount, BadValue, Kind
from tests.policy.examples import node


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


LEVELS = AmountsByWord(Level, Amount("level", 1, 10**6, products=True, word="engine"))
SIDES = Steps(Amount("side", 28, 65_535, word="none"))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LEVELS, "{low: 512x512, high: engine}", {"low": 262_144, "high": None}),
        (LEVELS, "{}", {}),
        (LEVELS, "ignore", None),
        (SIDES, "none", ()),
        (SIDES, "2048", ((1, 2048),)),
        (SIDES, "{21: 2000, 1: 8000}", ((1, 8000), (21, 2000))),
        (ActionsByField(), "allow", EngineFields(FieldAction.ALLOW)),
        (ActionsByField(), "{priority: reject, others: strip}", {"priority": "reject", "others": "strip"}),
    ],
)
def test_a_value_is_read_and_fits_its_schema(kind: Kind, text: str, value: object) -> None:
    assert kind.parse(node(text)) == value
    plain = (
        {str(key): each for key, each in loaded.items()} if isinstance(loaded := yaml.safe_load(text), dict) else loaded
    )
    jsonschema.validate(plain, kind.schema())


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        (LEVELS, "{lo: 5, high: 0, low: 1, low: 2}", ["lo", "high", "low"]),
        (LEVELS, "5", [""]),
        (SIDES, "{0: 8000, x: 1, 21: none, 5: 1}", ["0", "x", "21", "5"]),
        (SIDES, "{}", [""]),
        (SIDES, "[1]", [""]),
        (ActionsByField(), "{priorty: strip, uuid: keep, uuid: strip}", ["priorty", "uuid", "uuid"]),
        (ActionsByField(), "[strip]", [""]),
        (ActionsByRule(), "{max_pixel: shrink, max_pixels: drop_oldest}", ["max_pixel", "max_pixels"]),
    ],
)
def test_every_mistake_names_its_part(kind: Kind, text: str, parts: list[str]) -> None:
    with pytest.raises(BadValue) as caught:
        kind.parse(node(text))
    assert sorted(mistake.part for mistake in caught.value.mistakes) == sorted(parts)


def test_fields_are_laid_over_what_is_inherited() -> None:
    below = EngineFields(FieldAction.STRIP, (("uuid", FieldAction.REJECT),))
    found = joined_fields(below, {"priority": FieldAction.ALLOW})
    assert found.named == (("priority", FieldAction.ALLOW), ("uuid", FieldAction.REJECT))
    assert [found.action(name) for name in ("priority", "uuid", "rid")] == ["allow", "reject", "strip"]
    assert joined_fields(below, {"others": FieldAction.ALLOW}).action("rid") is FieldAction.ALLOW
    assert joined_fields(below, EngineFields(FieldAction.ALLOW)) == EngineFields(FieldAction.ALLOW)


@given(st.dictionaries(st.integers(1, 50), st.integers(28, 8000)), st.integers(0, 60))
def test_the_last_step_reached_holds(steps: dict[int, int], images: int) -> None:
    reached = [start for start in steps if start <= images]
    assert step_at(tuple(sorted(steps.items())), images) == (steps[max(reached)] if reached else None)
