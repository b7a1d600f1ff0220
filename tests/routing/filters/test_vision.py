from __future__ import annotations

import pytest

from gateway.errors import InvalidRequest
from gateway.routing.ask import Profile
from gateway.routing.filters.vision import VISION
from tests.routing.fields import asking, view

ASK = asking(images=(b"1", b"2"), needs_vision=True)


@pytest.mark.parametrize(("needs", "vision", "kept"), [(False, False, True), (True, True, True), (True, False, False)])
def test_vision(needs: bool, vision: bool, kept: bool) -> None:
    assert VISION.keeps(view("a", vision=vision), asking(images=(b"1",), needs_vision=needs)) is kept


def test_the_refusal_is_the_requests_fault() -> None:
    assert isinstance(VISION.refuse(ASK, Profile(), [view("a", vision=False)]), InvalidRequest)
