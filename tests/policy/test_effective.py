from __future__ import annotations

from dataclasses import fields

from gateway.policy.effective import CacheSalt, Mode, RuleValues
from gateway.policy.rules import RULES
from tests.policy.examples import BUILTIN, policy


def test_every_rule_has_its_typed_field_and_no_field_lacks_its_rule() -> None:
    assert {field.name for field in fields(RuleValues)} == {rule.key for rule in RULES}


def test_the_built_in_policy_is_the_engines_own_behaviour() -> None:
    assert BUILTIN.max_pixels is None
    assert BUILTIN.kv_tokens_in_flight is None
    assert BUILTIN.cache_salt is CacheSalt.NONE
    assert not BUILTIN.shadow


def test_shadow_follows_the_mode() -> None:
    assert policy(mode=Mode.SHADOW).shadow
