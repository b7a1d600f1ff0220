from __future__ import annotations

from gateway.policy.effective import ColourProfile
from gateway.policy.rules.colour_profile import RULE
from tests.policy.examples import BUILTIN, node


def test_profiles_are_ignored_as_engines_do_unless_a_policy_says_otherwise() -> None:
    assert BUILTIN.colour_profile is ColourProfile.IGNORE
    assert RULE.kind.parse(node("srgb")) is ColourProfile.SRGB
