from __future__ import annotations

import pytest

from gateway.api.auth import Authenticator, hash_key, make_key
from gateway.config.policies import parse_yaml
from gateway.errors import Unauthenticated
from gateway.policy.keys import Caller
from gateway.policy.policyset import DEFAULT_TENANT, build_policy_set, builtin_policies
from gateway.policy.schema import parse_document
from gateway.types import HeaderList, TaskName, TenantId


def authenticator(**keys: str) -> Authenticator:
    """One tenant per argument, with that key."""
    documents = []
    for tenant, key in keys.items():
        head = "" if tenant == "default" else f"tenant: {tenant}\n"
        file = f"policies/{tenant}.yaml"
        document, problems = parse_document(parse_yaml(f'{head}keys: ["{hash_key(key)}"]', file), file)
        assert not problems
        documents.append(document)
    policies, problems = build_policy_set(documents)
    assert not problems
    return Authenticator(policies)


def test_without_keys_everybody_is_the_default_tenant() -> None:
    door = Authenticator(builtin_policies())
    assert door.open_to_all
    assert door.caller([]).tenant == DEFAULT_TENANT
    assert door.caller([("Authorization", "Bearer sk-anything")]).tenant == DEFAULT_TENANT


@pytest.mark.parametrize(
    ("headers", "tenant"),
    [
        ([("Authorization", "Bearer tenant-a-key")], "org_1"),
        ([("authorization", "bearer   tenant-b-key ")], "org_2"),
        ([("X-Api-Key", "tenant-b-key")], "org_2"),
        ([("Authorization", "Basic dXNlcjpwdw=="), ("x-api-key", "tenant-a-key")], "org_1"),
        ([("Authorization", "Bearer tenant-a-key"), ("x-api-key", "tenant-b-key")], "org_1"),
        ([("Authorization", "Bearer shared")], "default"),
    ],
)
def test_a_key_leads_to_its_tenant(headers: HeaderList, tenant: str) -> None:
    door = authenticator(org_1="tenant-a-key", org_2="tenant-b-key", default="shared")
    assert not door.open_to_all
    assert door.caller(headers).tenant == tenant


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer ")],
        [("Authorization", "tenant-a-key")],
        [("Authorization", "Bearer tenant-a-ke")],
        [("Authorization", f"Bearer {hash_key('tenant-a-key')}")],
        [("Authorization", "Bearer tenant-a-key"), ("authorization", "Bearer tenant-a-key")],
        [("x-api-key", "tenant-a-key"), ("x-api-key", "other")],
        [("Authorization", "Bearer \udcff\udcfe")],
        [("Authorization", "Bearer wrong"), ("x-api-key", "tenant-a-key")],
    ],
)
def test_everything_else_is_refused_in_the_same_words(headers: HeaderList) -> None:
    with pytest.raises(Unauthenticated) as caught:
        authenticator(org_1="tenant-a-key").caller(headers)
    assert caught.value.status == 401
    assert caught.value.message == "A valid API key is required."


def test_a_made_key_opens_its_door_and_no_two_are_alike() -> None:
    key, key_hash = make_key()
    assert hash_key(key) == key_hash
    assert len(key) > 40
    assert make_key() != make_key()
    assert authenticator(acme=key).caller([("x-api-key", key)]).tenant == "acme"


NOON = 1_800_000_000.0


def door_of(keys: str, secret: str | None = None, now_s: float = NOON) -> Authenticator:
    document, problems = parse_document(
        parse_yaml(f"tenant: acme\nkeys:\n{keys}", "policies/a.yaml"), "policies/a.yaml"
    )
    assert not problems
    policies, problems = build_policy_set([document])
    assert not problems
    return Authenticator(policies, secret=secret, now_s=lambda: now_s)


def bearer(key: str) -> HeaderList:
    return [("Authorization", f"Bearer {key}")]


def test_a_key_under_the_secret_opens_with_that_secret_only() -> None:
    keys = f"  - {hash_key('mine', 's1')}\n  - {hash_key('plain')}\n"
    door = door_of(keys, "s1")
    assert door.caller(bearer("mine")).tenant == door.caller(bearer("plain")).tenant == "acme"
    with pytest.raises(Unauthenticated):
        door_of(keys, "s2").caller(bearer("mine"))
    with pytest.raises(ValueError, match=r"identity\.secret"):
        door_of(keys)
    assert hash_key("mine", "s1") != hash_key("mine", "s2")


def test_a_key_has_a_name_and_a_task() -> None:
    door = door_of(f"  - {{hash: '{hash_key('k')}', name: ci, task: ocr}}\n")
    assert door.caller(bearer("k")) == Caller(TenantId("acme"), "ci", TaskName("ocr"))


def test_an_expired_key_says_so_to_its_holder_only() -> None:
    keys = f"  - {{hash: '{hash_key('k')}', name: old, expires: '2027-01-15T08:00:00Z'}}\n"  # NOON
    assert door_of(keys, now_s=NOON - 1).caller(bearer("k")).key == "old"
    with pytest.raises(Unauthenticated, match="expired"):
        door_of(keys).caller(bearer("k"))
    with pytest.raises(Unauthenticated) as refused:
        door_of(keys).caller(bearer("another"))
    assert "expired" not in str(refused.value)


def test_rotation_means_two_keys_for_a_while() -> None:
    door = door_of(f"  - {{hash: '{hash_key('old')}', expires: 2099-12-31}}\n  - {hash_key('new')}\n")
    assert door.caller(bearer("old")).tenant == door.caller(bearer("new")).tenant
