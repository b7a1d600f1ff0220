from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pytest

from gateway.errors import all_errors
from gateway.policy.effective import Excess, OnExcess, Profile, RuleValues
from gateway.policy.profiles import PROFILES
from gateway.policy.rules import RULES_BY_KEY
from gateway.policy.shown import told
from tests.policy.examples import node, policy_set
from tests.policy.test_resolve import ask


def test_every_profile_has_its_file() -> None:
    assert set(PROFILES) == set(Profile) - {Profile.NONE}
    assert all(profile.name == name.value for name, profile in PROFILES.items())


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_value_is_one_that_a_file_could_hold(name: Profile) -> None:
    profile = PROFILES[name]
    for key, value in profile.rules.items():
        kind = RULES_BY_KEY[key].kind
        if key == "detail" and value is None:
            continue
        text = (
            told(value)
            if not isinstance(value, Mapping)
            else "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
        )
        assert kind.parse(node(text)) == value, key


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_errors_are_ours_to_begin_with(name: Profile) -> None:
    assert set(PROFILES[name].errors) <= {error.code for error in all_errors()}


def test_a_profile_lies_below_the_file_that_names_it_and_above_what_is_inherited() -> None:
    policies = policy_set(
        default="rules: {max_images: 7, jpeg_quality: 80}",
        acme="tenant: acme\nprofile: anthropic\nrules: {max_image_bytes: 1MB}",
    )
    found = ask(policies)
    assert (found.max_images, found.reasons["max_images"]) == (100, "profile anthropic (policies/acme.yaml:2 profile)")
    assert (found.max_image_bytes, found.jpeg_quality) == (10**6, 80)
    assert found.max_input_side == ((1, 8000), (21, 2000))
    assert ask(policies, tenant="default").max_images == 7


def test_the_most_particular_profile_is_the_only_one() -> None:
    policies = policy_set(
        default="profile: openai",
        acme="tenant: acme\ntasks: {chat: {}, ocr: {profile: gemini}, document: {profile: none}}",
    )
    assert [ask(policies, header_task=task).max_images for task in ("chat", "ocr", "document")] == [1500, 3600, 100]
    assert ask(policies, header_task="chat").detail
    assert ask(policies, header_task="ocr").detail == ()
    assert ask(policies, header_task="document").profile is Profile.NONE


def test_actions_of_other_rules_stay_as_inherited() -> None:
    policies = policy_set(default="rules: {on_excess: reject}", acme="tenant: acme\nprofile: openai")
    found = ask(policies).on_excess
    assert (found.max_pixels, found.max_image_tokens) == (Excess.SHRINK, Excess.REJECT)
    assert {field.name for field in fields(OnExcess)} - {field.name for field in fields(RuleValues)} == set()
