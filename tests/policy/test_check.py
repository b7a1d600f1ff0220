from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import (
    ContextTooLong,
    GatewayError,
    ImageTooLarge,
    SourceBlocked,
    TooManyImages,
    TooManyTokens,
    UnsupportedFormat,
)
from gateway.policy.check import check_declared, check_measured, host_matches
from gateway.policy.effective import EffectivePolicy, Mode
from gateway.policy.rule import MeasuredImage
from gateway.types import Call, ImageFormat, TokenEstimate
from tests.policy.examples import call, estimate, image, long_source, part, policy


def test_four_images_of_four_pass_and_five_are_refused_with_both_numbers() -> None:
    four = policy(max_images=4)
    assert check_declared(four, call(*[part(index) for index in range(4)])) == ()
    with pytest.raises(TooManyImages) as caught:
        check_declared(four, call(*[part(index) for index in range(5)]))
    assert caught.value.message == "The request has 5 images, the limit is 4."
    assert caught.value.part == "messages.0.content.4.image_url"


def test_a_finding_names_its_rule_and_privately_the_line_that_decided() -> None:
    strict = policy(max_images=0, reasons={"max_images": "policies/acme.yaml:3 rules.max_images"})
    with pytest.raises(TooManyImages) as caught:
        check_declared(strict, call(part()))
    assert caught.value.rule == "max_images"
    assert caught.value.detail == "policies/acme.yaml:3 rules.max_images"
    assert "acme" not in caught.value.message


def test_shadow_mode_returns_every_finding_and_raises_none() -> None:
    shadow = policy(mode=Mode.SHADOW, max_images=0, max_output_tokens=5, formats=(ImageFormat.PNG,), max_image_tokens=1)
    declared = check_declared(shadow, call(part(), output_limit_tokens=6))
    assert [error.code for error in declared] == ["too_many_images", "too_many_tokens"]
    measured = check_measured(shadow, [image()], estimate(), 100)
    assert {type(error) for error in measured} == {UnsupportedFormat, TooManyTokens, ContextTooLong}


@pytest.mark.parametrize(
    ("hosts", "source", "blocked"),
    [
        (None, "https://anything.example/a.png", False),
        ((), "https://anything.example/a.png", True),
        ((), "data:image/png;base64,AAAA", False),
        (("img.example",), "HTTPS://IMG.example:8443/a.png", False),
        (("img.example",), "https://img.example.evil/a.png", True),
        (("*.example",), "https://img.example./a.png", False),
        (("img.example",), "https://img.example@evil.test/a.png", True),
        ((), "https://[broken/a.png", False),
    ],
)
def test_hosts_that_are_visibly_not_allowed_are_refused_before_fetching(
    hosts: tuple[str, ...] | None, source: str, blocked: bool
) -> None:
    found = check_declared(policy(mode=Mode.SHADOW, hosts=hosts), call(part(0, source)))
    assert [type(error) for error in found] == ([SourceBlocked] if blocked else [])


def test_a_long_source_is_left_to_the_fetcher() -> None:
    assert check_declared(policy(hosts=()), call(part(0, long_source(2000)))) == ()


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("example.com", "example.com", True),
        ("example.com", "a.example.com", False),
    ],
)
def test_host_patterns(pattern: str, host: str, fits: bool) -> None:
    assert host_matches(pattern, host) is fits


def test_a_prompt_that_leaves_no_room_for_output_is_refused_with_context_and_estimate() -> None:
    with pytest.raises(ContextTooLong) as caught:
        check_measured(policy(), [image()], estimate(20, 1024), 1000)
    assert caught.value.message == (
        "The prompt needs at least 1036 tokens (1026 of them for images) and one more for output, "
        "the model's context holds 1000."
    )
    assert (caught.value.part, caught.value.rule) == ("messages", "context")


@pytest.mark.parametrize("key", ["max_prompt_tokens", "max_kv_tokens", "max_kv_bytes"])
def test_what_is_too_much_of_the_whole_prompt_names_the_field_that_holds_it(key: str) -> None:
    with pytest.raises(TooManyTokens) as caught:
        check_measured(policy(**{key: 5}), [], estimate(20, 0), None, kv_bytes=600, prompt_field="input")
    assert (caught.value.part, caught.value.rule) == ("input", key)
    assert "the limit is 5." in caught.value.message


def test_a_host_that_is_not_allowed_is_named_with_those_that_are() -> None:
    listed = tuple(f"h{number}.example" for number in range(10))
    (error,) = check_declared(
        policy(mode=Mode.SHADOW, hosts=listed), call(part(0, "https://u@Other.example/a.png?k=1"))
    )
    assert (error.part, error.rule) == (part(0, "x").name, "hosts")
    assert error.message == (
        "The policy lets no images be fetched from other.example; allowed: "
        + ", ".join(listed[:8]) + " and 2 more."
    )  # fmt: skip


def test_an_exact_count_is_said_to_be_one() -> None:
    with pytest.raises(ContextTooLong, match=r"^The prompt needs 1000 tokens and one more for output"):
        check_measured(policy(), [], estimate(1000, 0, exact=True), 1000)


def test_only_certain_overflow_is_refused() -> None:
    assert check_measured(policy(), [image()], estimate(900, 256), 800) == ()  # the lower bound fits
    assert check_measured(policy(), [], estimate(999, 0, exact=True), 1000) == ()
    assert check_measured(policy(), [image()], estimate(20, 768, output=300), 1024) == ()  # only the sum is too big
    assert check_measured(policy(), [image()], estimate(10**6, 256), None) == ()


LIMITS = st.one_of(st.none(), st.integers(0, 40))
POLICIES: dict[str, st.SearchStrategy[Any]] = {
    "max_images": LIMITS,
    "max_image_bytes": st.integers(1, 5000),
    "max_input_pixels": st.integers(1, 2000),
    "max_image_tokens": LIMITS,
    "max_prompt_tokens": LIMITS,
    "max_output_tokens": LIMITS,
}


def admitted(effective: EffectivePolicy, request: Call, images: list[MeasuredImage], tokens: TokenEstimate) -> bool:
    try:
        check_declared(effective, request)
        check_measured(effective, images, tokens, None)
    except GatewayError:
        return False
    return True


@given(
    st.fixed_dictionaries(POLICIES),
    st.sampled_from(sorted(POLICIES)),
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 6000)), max_size=6),
    st.one_of(st.none(), st.integers(1, 40)),
)
def test_a_tighter_policy_never_admits_more(
    values: dict[str, Any], key: str, less: int, sizes: list[tuple[int, int, int]], output: int | None
) -> None:
    tighter = dict(values)
    tighter[key] = max(0, values[key] - less) if values[key] is not None else less
    request = call(*[part(index) for index in range(len(sizes))], output_limit_tokens=output)
    images = [image(width, height, byte_count=size) for width, height, size in sizes]
    tokens = estimate(10, sum(width for width, _, _ in sizes))
    if admitted(policy(**tighter), request, images, tokens):
        assert admitted(policy(**values), request, images, tokens)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=4), st.integers(0, 99))
def test_no_message_holds_a_negative_number(sizes: list[tuple[int, int]], limit: int) -> None:
    strict = policy(mode=Mode.SHADOW, max_images=0, max_image_tokens=limit, max_prompt_tokens=limit, max_input_pixels=1)
    images = [image(width, height) for width, height in sizes]
    found = check_declared(strict, call(*[part(index) for index in range(len(sizes))]))
    found += check_measured(strict, images, estimate(100, 100), limit)
    assert found
    assert not any("-" in error.message for error in found)


def test_an_image_too_large_names_its_place() -> None:
    with pytest.raises(ImageTooLarge) as caught:
        check_measured(policy(max_input_pixels=64_000_000), [image(12_000, 12_000)], estimate(), None)
    assert caught.value.part == "messages.0.content.0.image_url"
