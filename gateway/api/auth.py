"""Who calls: an API key or a signed token -> a tenant, and the task that comes with it (part of stage *accept*).

Decided here: where a key stands in a request, and how it is compared. Not decided here: how keys are stored and why
(`policy.keys`), what a token must prove (`api.oidc`), what a tenant may do.

Constant time: a dictionary looked up by the stored hash would answer sooner or later depending on how far a guess
agrees with it. The index is therefore keyed by an HMAC of the hash under a secret made at start, whose values no caller
can steer or predict; the hash itself is then compared with `hmac.compare_digest`, against a decoy when nothing matched.
Time depends on the length of the presented key alone, and on nothing that is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from gateway.api.oidc import Tokens, looks_like_token
from gateway.errors import Unauthenticated
from gateway.policy import DEFAULT_TENANT, PolicySet
from gateway.policy.keys import Caller, Key
from gateway.types import HeaderList, TenantId

KEY_PREFIX = "vgw-"
_PLAIN = "sha256:"
_KEYED = "hmac-sha256:"


class Authenticator:
    """The keys of one policy snapshot, and whose tokens are believed; a reload makes a new one."""

    def __init__(
        self,
        policies: PolicySet,
        *,
        secret: str | None = None,
        tokens: Tokens | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Raises ValueError where a key is stored under a secret that is not configured."""
        self._secret = None if secret is None else _storage_key(secret)
        if self._secret is None and any(key.needs_secret for key, _ in policies.keys.values()):
            raise ValueError("identity.secret: keys are stored as hmac-sha256 under it, and it is not set")
        self._tokens = tokens
        self._tenants = policies.tenants
        self._now_s = now_s
        self._blinding = secrets.token_bytes(32)
        self._index = {
            self._blind(_digest_of(key)): (_digest_of(key), key, tenant) for key, tenant in policies.keys.values()
        }
        self._decoy = (secrets.token_bytes(33), Key(""), DEFAULT_TENANT)
        # Both forms are only computed where both are stored: one look-up more for each.
        self._forms = sorted({key.needs_secret for key, _ in policies.keys.values()})

    @property
    def open_to_all(self) -> bool:
        """Nobody is known: everybody is the default tenant and Authorization is the backend's affair."""
        return not self._index and self._tokens is None

    def caller(self, headers: HeaderList) -> Caller:
        """Say who calls. Raises Unauthenticated: missing, doubled or unknown in the same words; expired says so."""
        if self.open_to_all:
            return Caller(DEFAULT_TENANT)
        presented = _presented_key(headers)
        if presented is None:
            raise Unauthenticated(detail="no key, or more than one")
        if self._tokens is not None and looks_like_token(presented):
            return self._tokens.caller(presented.decode("ascii", "replace"), self._tenants)
        key, tenant = self._find(presented)
        if key.expires_s is not None and self._now_s() >= key.expires_s:
            raise Unauthenticated("The API key has expired.", detail=f"key {key.name or key.hash[:15]}")
        return Caller(tenant, key.name, key.task)

    def _find(self, presented: bytes) -> tuple[Key, TenantId]:
        found = None
        for keyed in self._forms:
            digest = self._digest(presented, keyed=keyed)
            stored, key, tenant = self._index.get(self._blind(digest), self._decoy)
            if hmac.compare_digest(stored, digest):
                found = (key, tenant)
        if found is None:
            raise Unauthenticated(detail="unknown key")
        return found

    def _digest(self, presented: bytes, *, keyed: bool) -> bytes:
        if keyed and self._secret is not None:
            return _KEYED.encode() + hmac.digest(self._secret, presented, "sha256")
        return _PLAIN.encode() + hashlib.sha256(presented).digest()

    def _blind(self, digest: bytes) -> bytes:
        return hmac.digest(self._blinding, digest, "sha256")


def _digest_of(key: Key) -> bytes:
    form, _, hexadecimal = key.hash.partition(":")
    return form.encode() + b":" + bytes.fromhex(hexadecimal)


def _storage_key(secret: str) -> bytes:
    """A key of its own for stored API keys, so that the secret's other uses reveal nothing about them."""
    return hmac.digest(secret.encode(), b"vlm-gateway api keys", "sha256")


def _presented_key(headers: HeaderList) -> bytes | None:
    """The one key of a request: ``Authorization: Bearer`` (OpenAI's way) or else ``x-api-key`` (Anthropic's).

    Several values of one header are refused rather than chosen from: another hop might choose differently.
    """
    for name, scheme in (("authorization", "bearer "), ("x-api-key", "")):
        values = [value.strip() for header, value in headers if header.lower() == name]
        keys = [value[len(scheme) :].strip() for value in values if value.lower().startswith(scheme)]
        if len(values) > 1:
            return None
        if keys and keys[0]:
            return keys[0].encode("utf-8", "surrogateescape")
    return None


def hash_key(key: str, secret: str | None = None) -> str:
    """What stands in a policy's ``keys`` for this key: under the deployment's secret, where there is one."""
    if secret is None:
        return _PLAIN + hashlib.sha256(key.encode()).hexdigest()
    return _KEYED + hmac.digest(_storage_key(secret), key.encode(), "sha256").hex()


def make_key(secret: str | None = None) -> tuple[str, str]:
    """A new key and its hash. The key is shown once and stored nowhere."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    return key, hash_key(key, secret)
