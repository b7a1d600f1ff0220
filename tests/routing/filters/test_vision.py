from __future__ import annotations

import pytest

from gateway.errors import InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.vision import VISION
from tests.routing.fields import asking, view

IMAGES = (b"1", b"2")


@pytest.mark.parametrize(
    ("needs", "vision", "max_images", "kept"),
    [
        (False, False, None, True),
        (True, True, None, True),
        (True, True, 2, True),
        (True, True, 1, False),
        (True, False, None, False),
    ],
)
def test_vision(needs: bool, vision: bool, max_images: int | None, kept: bool) -> None:
    ask = asking(images=IMAGES, needs_vision=needs)
    assert VISION.keeps(view("a", vision=vision, max_images=max_images), ask) is kept


def test_videos_are_no_images() -> None:
    ask = asking(images=IMAGES, needs_vision=True, videos=1)
    assert VISION.keeps(view("a", max_images=1), ask)


def test_the_refusal_is_the_requests_fault() -> None:
    assert VISION.refuse is not None
    assert isinstance(VISION.refuse(RouteAsk(), Profile()), InvalidRequest)
