"""Tokens that an issuer signs (OpenID Connect, any JWT): who calls, without a key of ours.

Decided here: what a token must prove, and when the issuer's keys are fetched: at start, every few minutes, and when a
token names a key that is not known, but never while a request waits. Keys that were fetched stay good while the issuer
cannot be reached. Not decided here: what the tenant may do. Signatures are checked by PyJWT (extra ``jwt``).

Sources: RFC 7519 (claims), RFC 7517 (key sets), RFC 8725 (algorithms by configuration, never by the token's word:
``none`` and the symmetric ones are refused).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from gateway.errors import NotPermitted, Unauthenticated
from gateway.policy.keys import Caller
from gateway.policy.values import NAME
from gateway.types import TaskName, TenantId

if TYPE_CHECKING:
    import jwt

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_FETCH_TIMEOUT_S = 5.0
# An unknown key id asks the issuer again, but not more often: anybody can invent ids.
_RUSH_S = 10.0
_DOCUMENT_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Whose tokens are believed. One of ``jwks_url`` and ``jwks_file`` says where the issuer's public keys are.

    ``tenant_claim`` holds the tenant's name (``a.b`` looks inside an object), ``task_claim`` a task where there is one.
    """

    issuer: str
    audience: str
    jwks_url: str | None = None
    jwks_file: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    tenant_claim: str = "tenant"
    task_claim: str | None = None
    leeway_s: float = 30.0
    refresh_s: float = 300.0


def looks_like_token(presented: bytes) -> bool:
    """Whether a bearer value is a signed token: three parts, the first an object in base64url."""
    return presented.startswith(b"eyJ") and presented.count(b".") == 2


class Tokens:
    """The issuer's keys and the check of one token. ``start`` fetches, ``stop`` ends the refreshing."""

    def __init__(self, settings: OidcSettings, on_failure: Callable[[str], None] = lambda _: None) -> None:
        """Raises ValueError for settings that cannot be used and where PyJWT is not installed."""
        unknown = sorted(set(settings.algorithms) - set(ALGORITHMS))
        if unknown or not settings.algorithms:
            raise ValueError(f"jwt.algorithms: {', '.join(unknown) or 'none'} is not among {', '.join(ALGORITHMS)}")
        if not settings.audience:
            raise ValueError("jwt.audience: a token for another service must not open this one; name ours")
        if (settings.jwks_url is None) == (settings.jwks_file is None):
            raise ValueError("jwt: exactly one of jwks_url and jwks_file is needed")
        if "@" in (settings.jwks_url or ""):  # failures are told with their address
            raise ValueError("jwt.jwks_url: takes no credentials; key sets are public")
        try:
            import jwt  # noqa: PLC0415 - an optional library, loaded by whoever configures tokens
        except ImportError:
            raise ValueError("jwt needs the extra jwt: pip install 'vlm-gateway[jwt]'") from None
        self._jwt = jwt
        self._settings = settings
        self._on_failure = on_failure
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._asked_s = float("-inf")
        self._wanted = asyncio.Event()
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch the keys. An issuer that cannot be reached is reported and tried again; nobody gets in meanwhile."""
        await self._refresh()
        self._refreshing = asyncio.create_task(self._keep_fresh())

    async def stop(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

    def caller(self, token: str, tenants: Collection[TenantId]) -> Caller:
        """Who holds this token. Raises Unauthenticated, and NotPermitted where its tenant has no policy."""
        claims = self._claims(token)
        tenant = _claim(claims, self._settings.tenant_claim)
        if not isinstance(tenant, str) or TenantId(tenant) not in tenants:
            raise NotPermitted("The token names no tenant that has a policy here.", rule="tenant")
        task = None if self._settings.task_claim is None else _claim(claims, self._settings.task_claim)
        subject = claims.get("sub")
        name = subject if isinstance(subject, str) and NAME.fullmatch(subject) else None
        return Caller(TenantId(tenant), name, TaskName(task) if isinstance(task, str) else None)

    def _claims(self, token: str) -> dict[str, Any]:
        settings, errors = self._settings, self._jwt.exceptions
        try:
            key = self._key(self._jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, Any] = self._jwt.decode(
                token,
                key,
                algorithms=list(settings.algorithms),
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.leeway_s,
                options={"require": ["exp", "iss", "aud"]},
            )
        except errors.ExpiredSignatureError:
            raise Unauthenticated("The token has expired.") from None
        except errors.PyJWTError as error:
            raise Unauthenticated(detail=f"token: {type(error).__name__}") from None
        return claims

    def _key(self, key_id: str | None) -> jwt.PyJWK:
        """By its id; a token without one is checked with the only key there is."""
        key = self._keys.get(key_id)
        if key is None and key_id is None and len(self._keys) == 1:
            (key,) = self._keys.values()
        if key is None:
            self._wanted.set()
            raise Unauthenticated(detail="token: a key that the issuer has not published")
        return key

    async def _keep_fresh(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.refresh_s):
                    await self._wanted.wait()
                    await asyncio.sleep(max(0.0, self._asked_s + _RUSH_S - time.monotonic()))
            except TimeoutError:
                pass
            await self._refresh()

    async def _refresh(self) -> None:
        self._wanted.clear()
        self._asked_s = time.monotonic()
        try:
            document = json.loads(await self._document())
            published = self._jwt.PyJWKSet.from_dict(document)
            self._keys = {key.key_id: key for key in published.keys if key.public_key_use in (None, "sig")}
        except (OSError, httpx.HTTPError, ValueError, AttributeError, self._jwt.exceptions.PyJWTError) as error:
            self._on_failure(f"{type(error).__name__}: {error}"[:200])

    async def _document(self) -> bytes:
        if self._settings.jwks_file is not None:
            return await asyncio.to_thread(Path(self._settings.jwks_file).read_bytes)
        assert self._settings.jwks_url is not None, "one of the two is given"
        async with httpx.AsyncClient(timeout=_FETCH_TIMEOUT_S, trust_env=False) as client:
            answer = await client.get(self._settings.jwks_url)
        answer.raise_for_status()
        if len(answer.content) > _DOCUMENT_LIMIT_BYTES:
            raise ValueError("the key set is larger than 1 MiB")
        return answer.content


def _claim(claims: object, path: str) -> object:
    """A claim by name, or the way to it through objects."""
    if isinstance(claims, dict) and path in claims:
        return claims[path]
    for step in path.split("."):
        claims = claims.get(step) if isinstance(claims, dict) else None
    return claims
