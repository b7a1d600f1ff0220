from __future__ import annotations

import re

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.effective import RateRule
from gateway.policy.rates import RATE_UNITS, WINDOWS_S, Rates, Weight, spelt
from gateway.policy.values import BadValue
from gateway.quota.claim import Unit
from tests.policy.examples import node, policy_set, problems_of
from tests.policy.test_resolve import ask

MIN, DAY = 60, 86_400


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("none", ()),
        ("{images: 600/min}", (RateRule("images", 600, MIN),)),
        ("{megapixels: 2.5/s}", (RateRule("megapixels", 2_500_000, 1),)),
        ("{tokens: 1M/day, requests: 10 / h}", (RateRule("requests", 10, 3_600), RateRule("tokens", 10**6, DAY))),
        (
            "{tokens: [1M/day, 20k/min burst 5k]}",
            (RateRule("tokens", 20_000, MIN, 5_000), RateRule("tokens", 10**6, DAY)),
        ),
        ("{images: none}", ()),
    ],
)
def test_a_rate_is_read_and_fits_its_schema(text: str, rules: tuple[RateRule, ...]) -> None:
    assert Rates().parse(node(text)) == rules
    jsonschema.validate(yaml.safe_load(text), Rates().schema())


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("600/min", "expected a mapping such as {images: 600/min, image_tokens: 1M/day}, or none"),
        ("{image: 600/min}", "unknown unit; did you mean images?"),
        ("{gpus: 1/s}", "unknown unit; one of requests, tokens, images"),
        ("{images: 600}", "expected a rate such as 600/min"),
        ("{images: []}", "expected a rate such as 600/min"),
        ("{images: 600/minute}", "window 'minute' is not one of s, min, h, day; did you mean min?"),
        ("{images: 600/mon}", "window 'mon' is not one of"),
        ("{images: 0.5/min}", "0.5 is not a whole number"),
        ("{images: 0/min}", "0 is out of range: a rate is 1 to 1000000000000"),
        ("{images: 5/min burst 6}", "a burst above the whole window's amount has no meaning"),
        ("{images: [5/min, 6/min]}", "two rates have the same window"),
        ("{images: 5/min, images: 6/min}", "this unit is written twice"),
    ],
)
def test_a_mistake_is_told(text: str, mistake: str) -> None:
    with pytest.raises(BadValue, match=f"^{re.escape(mistake)}"):
        Rates().parse(node(text))


def test_every_mistake_of_a_file_has_its_line_and_path() -> None:
    text = "rates:\n  images: 600/mn\n  pixels: 1/s\nweight: 0\npriority: urgent\n"
    assert problems_of(text) == [
        "policies/acme.yaml:2 rates.images: window 'mn' is not one of s, min, h, day; did you mean min?",
        "policies/acme.yaml:3 rates: unknown unit; did you mean megapixels?",
        "policies/acme.yaml:4 weight: 0 is out of range: 0.01 to 1000",
        "policies/acme.yaml:5 priority: expected one of high, normal, low, found 'urgent'",
    ]


def test_rates_are_the_tenants_and_replace_what_is_inherited() -> None:
    policies = policy_set(
        default="rates: {images: 5/s}\nweight: 2", acme="tenant: acme\nrates: {tokens: 9/s}\nweight: 0.5"
    )
    found = ask(policies)
    assert (found.rates, found.weight) == ((RateRule("tokens", 9, 1),), 0.5)
    assert problems_of("tasks: {ocr: {rates: none}}") != []


@given(
    st.sampled_from(RATE_UNITS),
    st.integers(1, 10**12),
    st.sampled_from(sorted(WINDOWS_S.values())),
    st.none() | st.integers(1, 10**12),
)
def test_a_rate_is_spelt_as_a_file_would_write_it(unit: str, amount: int, window_s: int, burst: int | None) -> None:
    rule = RateRule(unit, amount, window_s, burst and min(amount, burst))
    assert Rates().parse(node(yaml.safe_dump({unit: spelt(rule)}))) == (rule,)


def test_rates_are_spelt_with_the_largest_factor() -> None:
    assert spelt(RateRule("image_tokens", 20_000_000, DAY)) == "20M/day"
    assert spelt(RateRule("megapixels", 2_500_000, 1, 1_000_000)) == "2.5/s burst 1"


def test_weights_are_numbers() -> None:
    assert Weight().parse(node("2.5")) == 2.5
    with pytest.raises(BadValue, match="a number such as"):
        Weight().parse(node("heavy"))


def test_the_units_are_those_of_the_quota() -> None:
    assert set(RATE_UNITS) == {unit.value for unit in Unit} - {"kv_tokens", "kv_bytes"}
