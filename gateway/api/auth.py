"""Who calls: an API key -> a tenant (part of stage *accept*).

Keys are 256 random bits (`make_key`), so one SHA-256 is enough to store them: nobody searches 2^256 keys, and a slow
hash would only let callers burn our CPU. A key that people chose themselves is as weak as their choice; policy files
hold hashes only, but they are no place for a password. There is no pepper: it would be one more secret to lose, and
against a random key it adds nothing.

Constant time: a dictionary looked up by the stored hash would answer sooner or later depending on how far a guess
agrees with it. The index is therefore keyed by an HMAC of the hash under a secret made at start, whose values no caller
can steer or predict; the hash itself is then compared with `hmac.compare_digest`, against a decoy when nothing matched.
Time depends on the length of the presented key alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from gateway.errors import Unauthenticated
from gateway.policy import DEFAULT_TENANT, PolicySet
from gateway.types import HeaderList, TenantId

_KEY_PREFIX = "vgw-"
_HASH_PREFIX = "sha256:"


class Authenticator:
    """The keys of one policy snapshot; a reload makes a new one."""

    def __init__(self, policies: PolicySet) -> None:
        self._secret = secrets.token_bytes(32)
        self._index = {
            self._blind(bytes.fromhex(key_hash.removeprefix(_HASH_PREFIX))): (
                bytes.fromhex(key_hash.removeprefix(_HASH_PREFIX)),
                tenant,
            )
            for key_hash, tenant in policies.key_hashes.items()
        }
        self._decoy = (secrets.token_bytes(32), DEFAULT_TENANT)

    @property
    def open_to_all(self) -> bool:
        """No keys are configured: everybody is the default tenant and Authorization is the backend's affair."""
        return not self._index

    def tenant(self, headers: HeaderList) -> TenantId:
        """Say who calls. Raises Unauthenticated for a missing, doubled or unknown key, in the same words."""
        if self.open_to_all:
            return DEFAULT_TENANT
        key = _presented_key(headers)
        if key is None:
            raise Unauthenticated(detail="no key, or more than one")
        digest = hashlib.sha256(key).digest()
        stored, tenant = self._index.get(self._blind(digest), self._decoy)
        if not hmac.compare_digest(stored, digest):
            raise Unauthenticated(detail="unknown key")
        return tenant

    def _blind(self, digest: bytes) -> bytes:
        return hmac.digest(self._secret, digest, "sha256")


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


def hash_key(key: str) -> str:
    """What stands in a policy's ``keys`` for this key."""
    return _HASH_PREFIX + hashlib.sha256(key.encode()).hexdigest()


def make_key() -> tuple[str, str]:
    """A new key and its hash. The key is shown once and stored nowhere."""
    key = _KEY_PREFIX + secrets.token_urlsafe(32)
    return key, hash_key(key)
