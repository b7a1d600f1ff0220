from __future__ import annotations

import pytest

from gateway.api.auth import Authenticator, hash_key, make_key
from gateway.config.policies import parse_yaml
from gateway.errors import Unauthenticated
from gateway.policy.policyset import DEFAULT_TENANT, build_policy_set, builtin_policies
from gateway.policy.schema import parse_document
from gateway.types import HeaderList


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
    assert door.tenant([]) == DEFAULT_TENANT
    assert door.tenant([("Authorization", "Bearer sk-anything")]) == DEFAULT_TENANT


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
    assert door.tenant(headers) == tenant


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
        authenticator(org_1="tenant-a-key").tenant(headers)
    assert caught.value.status == 401
    assert caught.value.message == "A valid API key is required."


def test_a_made_key_opens_its_door_and_no_two_are_alike() -> None:
    key, key_hash = make_key()
    assert hash_key(key) == key_hash
    assert len(key) > 40
    assert make_key() != make_key()
    assert authenticator(acme=key).tenant([("x-api-key", key)]) == "acme"
