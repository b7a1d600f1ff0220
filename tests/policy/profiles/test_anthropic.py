from __future__ import annotations

from gateway.errors import PoolSaturated, Spelling, UnsupportedFormat
from gateway.models.closed import closed_profile
from gateway.policy.profiles.anthropic import PROFILE
from gateway.types import Size


def test_the_cap_is_what_the_vendors_own_price_looks_at() -> None:
    priced = closed_profile("claude-sonnet-4-5")
    assert priced is not None
    assert priced.image_tokens(Size(4032, 3024)).size.pixels <= PROFILE.rules["max_pixels"]  # type: ignore[operator]  # an int by its rule
    assert priced.image_tokens(Size(9000, 500)).size.width == 1568


def test_an_overload_is_529_and_a_fault_400() -> None:
    assert PROFILE.spelling(PoolSaturated()) == Spelling(529, "overloaded_error")
    assert PROFILE.spelling(UnsupportedFormat()) == Spelling(400, "invalid_request_error")
