from __future__ import annotations

from gateway.errors import KvBudgetExhausted, SourceFailed, Spelling, TooManyImages
from gateway.models.closed import closed_profile
from gateway.policy.profiles.openai import PROFILE
from gateway.types import Size


def test_levels_of_detail_are_what_the_vendors_own_price_looks_at() -> None:
    levels = PROFILE.rules["detail"]
    assert isinstance(levels, dict)
    priced = closed_profile("gpt-5.4")
    assert priced is not None
    for level in ("high", "original"):
        assert priced.image_tokens(Size(9_000, 9_000), level).tokens * 32 * 32 <= levels[level]
    assert levels["auto"] == levels["high"]


def test_faults_of_images_are_400_in_its_words() -> None:
    assert PROFILE.spelling(SourceFailed()) == Spelling(400, "failed_to_download_image")
    assert PROFILE.spelling(KvBudgetExhausted()) == Spelling(429, "rate_limit_exceeded")
    assert PROFILE.spelling(TooManyImages()) is None
