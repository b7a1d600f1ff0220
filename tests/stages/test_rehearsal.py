"""What enforcement would make of known images, told by rule."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import KvBudgetExhausted, TooManyImages
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.effective import Excess, History, OnExcess
from gateway.stages.rehearsal import Rehearsal, refusal_of, rehearse
from gateway.stages.serving import served_model
from gateway.types import Call, Size
from tests.journey.fakes import facts, view
from tests.policy.examples import call, part, policy

BOOK = ModelBook(shipped_catalog())
SQUARE = Size(512, 512)
DROPS = OnExcess(max_images=Excess.DROP_OLDEST, max_total_pixels=Excess.DROP_OLDEST)


def rehearsed(count: int, size: Size = SQUARE, **values: Any) -> Rehearsal:
    given = policy(**values)
    asked: Call = call(*[part(index) for index in range(count)])
    return rehearse(given, served_model(BOOK, given, (view("a"),)), asked, [facts(size)] * count, "v")


@pytest.mark.parametrize(
    ("values", "changes", "left"),
    [
        ({}, {}, 8),
        ({"max_pixels": 65_536}, {"max_pixels": 8}, 8),
        ({"max_side": ((1, 256),)}, {"max_side": 8}, 8),
        ({"max_image_tokens": 800}, {"max_image_tokens": 8}, 8),
        ({"max_total_pixels": 500_000}, {"max_total_pixels": 8}, 8),
        ({"max_images": 3, "on_excess": DROPS}, {"max_images": 5}, 3),
        ({"max_total_pixels": 786_432, "on_excess": DROPS}, {"max_total_pixels": 5}, 3),
        ({"history": History(images=6, batch=4, keep_newest=2)}, {"history": 4}, 4),
        ({"history": History(images=6, batch=4, keep_newest=2), "max_images": 3, "on_excess": DROPS},
         {"history": 4, "max_images": 1}, 3),
        ({"history": History(tokens=1_600, batch=4, keep_newest=2)}, {"history": 4}, 4),
    ],
)  # fmt: skip
def test_each_change_is_told_by_its_rule(values: dict[str, Any], changes: dict[str, int], left: int) -> None:
    found = rehearsed(8, **values)
    assert found.changes == changes
    assert len(found.kept.call.images) == len(found.kept.plans) == left


def test_what_the_engine_would_do_too_is_told_apart() -> None:
    assert rehearsed(1, Size(8192, 8192)).changes == {"engine_cap": 1}


def test_a_refusal_goes_by_its_rule_or_its_code() -> None:
    assert refusal_of(TooManyImages(rule="max_images")) == "max_images"
    assert refusal_of(KvBudgetExhausted()) == KvBudgetExhausted.code
    assert TooManyImages(rule="max_images").finding == "too_many_images:max_images"
    assert TooManyImages().finding == "too_many_images"
