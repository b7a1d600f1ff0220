"""What is no secret is refused, and what is open to all is told."""

from __future__ import annotations

import secrets
from base64 import b64encode
from dataclasses import replace

import pytest

from docs.examples import EXAMPLES
from gateway.config.advice import Advice, advice, key_advice, secret_problems
from gateway.config.settings import IdentityConfig, JwtConfig, RedisConfig, ServerSettings, Settings
from gateway.policy.policyset import builtin_policies
from tests.policy.examples import policy_set

TOKEN = {"VLMGW_ADMIN_TOKEN": "of-this-test-0123456789"}


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("", "is empty; give one or leave it out"),
        ("hunter2", "has 7 characters, and fewer than 16 can be guessed"),
        ("s" * 32, "repeats 1 characters and can be guessed"),
        ("change-me-in-production", "is an example's"),
        ("CHANGEME", "is an example's"),
        ("what `openssl rand -base64 32` printed", "is an example's"),
        (EXAMPLES["identity.secret"], "is an example's"),
    ],
)
def test_what_is_no_secret_is_refused_with_how_to_make_one(secret: str, said: str) -> None:
    (problem,) = secret_problems(IdentityConfig(secret))
    assert problem.startswith(f"settings: identity.secret: {said}")
    assert not secret or problem.endswith("make one with: openssl rand -base64 32")
    assert len(secret) < 4 or secret not in problem


def test_secrets_are_taken() -> None:
    assert secret_problems(IdentityConfig()) == []
    for _ in range(100):
        for secret in (secrets.token_hex(32), b64encode(secrets.token_bytes(32)).decode(), secrets.token_urlsafe(16)):
            assert secret_problems(IdentityConfig(secret)) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"])
def test_an_admin_port_that_only_this_machine_reaches_needs_no_token(host: str) -> None:
    assert advice(replace(Settings(), server=ServerSettings(admin_host=host)), {}) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "fe80::1%eth0", "gateway.example.test", ""])
def test_one_that_others_reach_does(host: str) -> None:
    settings = replace(Settings(), server=ServerSettings(admin_host=host))
    (odd,) = advice(settings, {})
    assert odd.about == "server.admin_host"
    assert "VLMGW_ADMIN_TOKEN is not set" in odd.text
    assert advice(settings, TOKEN) == []
    short = "has 3 characters, and fewer than 16 can be guessed; make one with: openssl rand -base64 32"
    assert advice(settings, {"VLMGW_ADMIN_TOKEN": "abc"}) == [Advice("VLMGW_ADMIN_TOKEN", short)]


def test_replicas_without_a_common_secret_are_told() -> None:
    alone = replace(Settings(), redis=RedisConfig(url="redis://store.test"))
    assert [odd.about for odd in advice(alone, {})] == ["identity.secret"]
    assert advice(replace(alone, identity=IdentityConfig("0123456789abcdef")), {}) == []
    assert advice(replace(alone, server=ServerSettings(processes=2)), {}) == []


EVERYWHERE = replace(Settings(), server=ServerSettings(host="0.0.0.0"))
EXPIRING = policy_set(acme=f"tenant: acme\nkeys: [{{hash: 'sha256:{'a' * 64}', expires: 2026-01-31T00:00:00Z}}]")
THEN_S = 1769817600.0


def test_a_gateway_that_anybody_may_use_from_anywhere_is_told() -> None:
    (odd,) = key_advice(EVERYWHERE, builtin_policies(), 0.0)
    assert odd.about == "server.host"
    assert odd.text.startswith("0.0.0.0 is reached from other machines, and no policy has keys")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        replace(EVERYWHERE, jwt=JwtConfig(issuer="https://issuer.example.test")),
        replace(Settings(), server=ServerSettings(host="0.0.0.0", tls_cert_file="c.pem", tls_client_ca_file="ca.pem")),
        replace(Settings(), server=ServerSettings(host="0.0.0.0", tcp=False, unix_socket="/run/gateway.sock")),
    ],
)
def test_one_that_only_some_may_or_can_reach_is_not(settings: Settings) -> None:
    assert key_advice(settings, builtin_policies(), 0.0) == []


def test_keys_that_have_all_expired_are_told() -> None:
    assert key_advice(EVERYWHERE, EXPIRING, THEN_S - 1) == []
    (odd,) = key_advice(Settings(), EXPIRING, THEN_S)
    assert (odd.about, odd.text.split(",")[0]) == ("keys", "every API key of the policies has expired")
    assert key_advice(replace(Settings(), jwt=JwtConfig(issuer="https://issuer.example.test")), EXPIRING, THEN_S) == []
