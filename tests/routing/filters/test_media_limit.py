from __future__ import annotations

import pytest

from gateway.errors import InvalidRequest
from gateway.routing.ask import Profile
from gateway.routing.filters.media_limit import MEDIA_LIMIT
from tests.routing.fields import asking, view

IMAGES = (b"1", b"2")


@pytest.mark.parametrize(("limit", "kept"), [(None, True), (2, True), (1, False), (0, False)])
def test_no_more_images_than_the_engine_takes_in_a_prompt(limit: int | None, kept: bool) -> None:
    assert MEDIA_LIMIT.keeps(view("a", max_images=limit), asking(images=IMAGES, needs_vision=True)) is kept


def test_videos_are_no_images() -> None:
    assert MEDIA_LIMIT.keeps(view("a", max_images=1), asking(images=IMAGES, needs_vision=True, videos=1))


def test_the_refusal_says_how_many_would_do() -> None:
    fleet = [view("a", max_images=0), view("b", max_images=1)]
    refusal = MEDIA_LIMIT.refuse(asking(images=IMAGES, needs_vision=True), Profile(), fleet)
    assert isinstance(refusal, InvalidRequest)
    assert (refusal.rule, "2 images; no backend of this model takes more than 1" in refusal.message) == (
        "backend.max_images",
        True,
    )
