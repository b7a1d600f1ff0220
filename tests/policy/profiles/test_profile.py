from __future__ import annotations

from gateway.errors import KvBudgetExhausted, Spelling, TooManyImages, UnsupportedFormat
from gateway.policy.profiles.profile import VendorProfile

PROFILE = VendorProfile(
    "x", {}, errors={"image_format_unsupported": Spelling(400, "bad_format")}, words={429: "slow_down"}
)


def test_an_error_is_put_in_the_vendors_words_where_it_has_any() -> None:
    assert PROFILE.spelling(UnsupportedFormat()) == Spelling(400, "bad_format")
    assert PROFILE.spelling(KvBudgetExhausted()) == Spelling(429, "slow_down")
    assert PROFILE.spelling(TooManyImages()) is None
