"""Tokens that an issuer signed: what opens, what does not, and how the issuer's keys come and go."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from gateway.api.auth import Authenticator
from gateway.api.oidc import OidcSettings, Tokens, looks_like_token
from gateway.errors import NotPermitted, Unauthenticated
from gateway.policy.keys import Caller
from gateway.policy.policyset import build_policy_set
from gateway.types import TaskName, TenantId
from tests.policy.examples import policy_set
from tests.upstream.scripted import Exchange, ScriptedEngine, json_response

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
STRANGER = ec.generate_private_key(ec.SECP256R1())
ISSUER, AUDIENCE = "https://login.example", "vlm-gateway"
ACME = TenantId("acme")


def key_set(*names: str) -> bytes:
    known: dict[str, Any] = {
        "rsa": RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True),
        "ec": ECAlgorithm.to_jwk(EC.public_key(), as_dict=True),
        "ed": OKPAlgorithm.to_jwk(ED.public_key(), as_dict=True),
    }
    return json.dumps({"keys": [{**known[name], "kid": name, "use": "sig"} for name in names]}).encode()


def token(key: Any = EC, algorithm: str = "ES256", kid: str | None = "ec", **claims: Any) -> str:
    body = {"iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, "tenant": "acme", **claims}
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode({name: value for name, value in body.items() if value is not None}, key, algorithm, headers)


@asynccontextmanager
async def tokens(tmp_path: Path, *names: str, **changes: Any) -> AsyncIterator[Tokens]:
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(*(names or ("rsa", "ec", "ed"))))
    made = Tokens(replace(OidcSettings(ISSUER, AUDIENCE, jwks_file=str(file)), **changes))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")])
async def test_a_token_leads_to_its_tenant(tmp_path: Path, key: Any, algorithm: str, kid: str) -> None:
    async with tokens(tmp_path, task_claim="app.task") as known:
        found = known.caller(token(key, algorithm, kid, sub="ci", app={"task": "ocr"}), [ACME])
        assert found == Caller(ACME, "ci", TaskName("ocr"))
        assert known.caller(token(key, algorithm, kid, sub="any\nthing"), [ACME]) == Caller(ACME)


BAD: dict[str, dict[str, Any]] = {
    "expired": {"exp": 1_000_000_000},
    "not yet": {"nbf": 4_000_000_000},
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "another-service"},
    "no expiry": {"exp": None},
    "no audience": {"aud": None},
    "no issuer": {"iss": None},
    "a stranger's signature": {"key": STRANGER},
    "an unknown key": {"kid": "gone"},
    "another key's algorithm": {"key": RSA, "algorithm": "RS256"},
    "an algorithm that is not accepted": {"key": RSA, "algorithm": "PS512", "kid": "rsa"},
    "a symmetric signature": {"key": "s" * 64, "algorithm": "HS256"},
    "no signature": {"key": None, "algorithm": "none"},
}


@pytest.mark.parametrize("how", BAD)
async def test_everything_else_is_refused(tmp_path: Path, how: str) -> None:
    async with tokens(tmp_path) as known:
        with pytest.raises(Unauthenticated):
            known.caller(token(**BAD[how]), [ACME])


@pytest.mark.parametrize("text", ["eyJ..", "eyJhbGciOiJub25lIn0.e30.", "eyJ.a.b", "eyJ" + "x" * 5_000 + ".e.f"])
async def test_rubbish_is_refused(tmp_path: Path, text: str) -> None:
    async with tokens(tmp_path) as known:
        assert looks_like_token(text.encode())
        with pytest.raises(Unauthenticated):
            known.caller(text, [ACME])


async def test_a_tenant_without_a_policy_is_not_let_in(tmp_path: Path) -> None:
    async with tokens(tmp_path) as known:
        for tenant in ("umbrella", None, 5, ["acme"]):
            with pytest.raises(NotPermitted):
                known.caller(token(tenant=tenant), [ACME])


async def test_without_an_id_the_only_key_is_meant(tmp_path: Path) -> None:
    async with tokens(tmp_path, "ec") as known:
        assert known.caller(token(kid=None), [ACME]).tenant == ACME
    async with tokens(tmp_path) as known:
        with pytest.raises(Unauthenticated):
            known.caller(token(kid=None), [ACME])


async def test_keys_and_tokens_open_the_same_door(tmp_path: Path) -> None:
    async with tokens(tmp_path) as known:
        door = Authenticator(policy_set(acme="tenant: acme"), tokens=known)
        assert not door.open_to_all
        assert door.caller([("Authorization", f"Bearer {token()}")]).tenant == ACME
        for headers in ([], [("Authorization", "Bearer no-token")]):
            with pytest.raises(Unauthenticated):
                door.caller(headers)


async def test_keys_are_fetched_again_when_a_new_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.api.oidc._RUSH_S", 0.0)
    published = [key_set("rsa")]
    failures: list[str] = []

    async def serve(exchange: Exchange) -> None:
        await exchange.send(json_response(published[-1]))

    async with ScriptedEngine(serve) as issuer:
        known = Tokens(OidcSettings(ISSUER, AUDIENCE, jwks_url=f"{issuer.url}/jwks"), failures.append)
        await known.start()
        try:
            with pytest.raises(Unauthenticated):
                known.caller(token(), [ACME])
            published.append(key_set("rsa", "ec"))
            async with asyncio.timeout(30):
                while not opens(known):  # noqa: ASYNC110 - filled by another task
                    await asyncio.sleep(0.005)
            published.append(b"no json")
            asked = len(issuer.exchanges)
            with pytest.raises(Unauthenticated):
                known.caller(token(kid="third"), [ACME])
            async with asyncio.timeout(30):
                while not failures:  # noqa: ASYNC110 - filled by another task
                    await asyncio.sleep(0.005)
            assert len(issuer.exchanges) > asked
            assert opens(known), "what was fetched stays good"
        finally:
            await known.stop()


def opens(known: Tokens) -> bool:
    try:
        return known.caller(token(), [ACME]).tenant == ACME
    except Unauthenticated:
        return False


async def test_an_issuer_that_is_away_lets_nobody_in_and_is_reported(tmp_path: Path) -> None:
    failures: list[str] = []
    for place in ({"jwks_url": "http://127.0.0.1:9/jwks"}, {"jwks_file": str(tmp_path / "missing")}):
        known = Tokens(replace(OidcSettings(ISSUER, AUDIENCE), **place), failures.append)  # type: ignore[arg-type] # texts
        await known.start()
        assert not opens(known)
        await known.stop()
    assert len(failures) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithms": ("HS256",)}, "HS256"),
        ({"algorithms": ("none",)}, "none"),
        ({"algorithms": ()}, "algorithms"),
        ({"audience": ""}, "audience"),
        ({"jwks_file": None}, "exactly one"),
        ({"jwks_url": "https://x/jwks"}, "exactly one"),
        ({"jwks_file": None, "jwks_url": "https://user:word@x/jwks"}, "takes no credentials"),
    ],
)
def test_settings_that_would_let_too_much_in_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Tokens(replace(OidcSettings(ISSUER, AUDIENCE, jwks_file="f"), **changes))


def test_without_keys_tokens_alone_close_the_door() -> None:
    policies, _ = build_policy_set(())
    assert not Authenticator(policies, tokens=Tokens(OidcSettings(ISSUER, AUDIENCE, jwks_file="f"))).open_to_all
