from __future__ import annotations

from dataclasses import fields

from gateway.policy.effective import CacheSalt, EngineFields, FieldAction, Mode, RuleValues
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


def test_a_field_goes_on_only_where_it_is_allowed_by_its_own_name() -> None:
    places = [("cache_salt",), ("messages", 0, "content", 1, "uuid")]
    assert not EngineFields(FieldAction.STRIP).allows_any(places)
    assert not EngineFields(FieldAction.ALLOW).allows_any([])
    assert EngineFields(FieldAction.ALLOW).allows_any(places)
    named = (("uuid", FieldAction.ALLOW),)
    assert EngineFields(FieldAction.REJECT, named).allows_any(places)
    assert not EngineFields(FieldAction.REJECT, named).allows_any(places[:1])
