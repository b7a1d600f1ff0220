from __future__ import annotations

import pytest

from gateway.quota.claim import Charge, Unit
from gateway.quota.gcra import MICROSECONDS, Rate, charged, cost_us
from gateway.quota.standing import NOTHING, Standing, amount_of, duration, rate_headers, window_of

NOW_US = 1_790_000_000 * MICROSECONDS


def standing(*used: tuple[Unit, int, Rate]) -> Standing:
    charges = [Charge(unit, 0, rate) for unit, _, rate in used]
    tats_us = [charged(0, NOW_US, cost_us(amount, rate)) for _, amount, rate in used]
    return Standing(charges, tats_us, NOW_US, wall_s=1_790_000_000.5)


FULL = standing(
    (Unit.REQUESTS, 1, Rate(60, 60)),
    (Unit.TOKENS, 900, Rate(1_000, 60)),
    (Unit.TOKENS, 900, Rate(10_000, 86_400)),
    (Unit.MEGAPIXELS, 12_345_678, Rate(2_000_000_000, 60)),
    (Unit.PROMPT_TOKENS, 10, Rate(600, 60, burst=50)),
)


def test_openais_clients_find_what_they_look_for() -> None:
    assert rate_headers(FULL, "openai_chat") == [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-limit-tokens", "1000"),  # of two windows the one with less left
        ("x-ratelimit-remaining-tokens", "100"),
        ("x-ratelimit-reset-tokens", "54s"),
        ("x-ratelimit-limit-megapixels", "2000"),
        ("x-ratelimit-remaining-megapixels", "1987.65"),
        ("x-ratelimit-reset-megapixels", "371ms"),
        ("x-ratelimit-limit-prompt-tokens", "600"),
        ("x-ratelimit-remaining-prompt-tokens", "40"),
        ("x-ratelimit-reset-prompt-tokens", "1s"),
    ]


def test_anthropics_clients_find_times_in_rfc_3339() -> None:
    told = rate_headers(FULL, "anthropic_messages")
    assert told[:3] == [
        ("anthropic-ratelimit-requests-limit", "60"),
        ("anthropic-ratelimit-requests-remaining", "59"),
        ("anthropic-ratelimit-requests-reset", "2026-09-21T14:13:22Z"),
    ]
    assert told[-3][0] == "anthropic-ratelimit-input-tokens-limit"


def test_without_rates_nothing_is_told() -> None:
    assert rate_headers(NOTHING, "openai_chat") == []


@pytest.mark.parametrize(
    ("amount_us", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (17_000, "17ms"),
        (999_001, "1s"),
        (1_500_000, "1.5s"),
        (8_640_000, "8.64s"),
        (360_000_000, "6m0s"),
        (86_341_000_000, "23h59m1s"),
        (3_600_000_000, "1h0m0s"),
    ],
)
def test_durations_are_spelled_as_openai_does(amount_us: int, text: str) -> None:
    assert duration(amount_us) == text


def test_amounts_and_windows_for_people() -> None:
    assert (amount_of(Unit.IMAGES, 3), amount_of(Unit.MEGAPIXELS, 1_234_567)) == ("3", "1.234")
    assert amount_of(Unit.MEGAPIXELS, 250_000 * 10**6) == "250000"
    assert (window_of(Rate(1, 60)), window_of(Rate(1, 7))) == ("minute", "7 s")
