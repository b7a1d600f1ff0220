from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.encoder import ENCODER
from gateway.routing.holding import RouteKey
from tests.routing.fields import view

ASK = RouteAsk(key=RouteKey((b"1", b"2"), (4000, 8000), (1000, 2000)), is_exact=True)


@pytest.mark.parametrize(("limit", "kept"), [(None, True), (2000, True), (1999, False)])
def test_the_largest_image_must_fit_the_encoders_cache(limit: int | None, kept: bool) -> None:
    assert ENCODER.keeps(view("a", encoder_tokens=limit), ASK) is kept


def test_text_fits_anywhere() -> None:
    assert ENCODER.keeps(view("a", encoder_tokens=1), RouteAsk())


def test_the_refusal_names_the_image_and_is_for_exact_counts_only() -> None:
    fleet = [view("a", encoder_tokens=1500)]
    refusal = ENCODER.refuse(ASK, Profile(), fleet)
    assert isinstance(refusal, InvalidRequest)
    assert "Image 2 of this request has 2000 tokens" in refusal.message
    assert "1500" in refusal.message
    assert ENCODER.refuse(replace(ASK, is_exact=False), Profile(), fleet) is None
