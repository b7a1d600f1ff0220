"""What settings say that is no secret, and what they allow that was hardly meant.

Decided here: what is refused as a secret (whoever finds it finds API keys that are stored under it, and names images as
replicas do), and what an operator is warned of and may want all the same. Not decided here: where warnings appear
(``assembly.advising``, ``vlm-gateway check``).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.config.settings import IdentityConfig, Settings
from gateway.policy.policyset import PolicySet

_LEAST_CHARACTERS = 16
# Of 16 random hexadecimal digits fewer than this differ once in some thousand times, of 32 practically never.
_LEAST_DIFFERENT = 6
_PLACEHOLDERS = ("changeme", "replaceme", "placeholder", "yoursecret", "randombytes", "opensslrand")
_MAKE_ONE = "make one with: openssl rand -base64 32"


@dataclass(frozen=True, slots=True)
class Advice:
    """``about`` names the setting, or the variable of the environment."""

    about: str
    text: str


def secret_problems(identity: IdentityConfig) -> list[str]:
    """One line where the deployment's secret is none. It is never repeated."""
    secret = identity.secret
    if secret is None:
        return []
    letters = "".join(filter(str.isalnum, secret.casefold()))
    if not secret:
        reason = "is empty; give one or leave it out"
    elif any(each in letters for each in _PLACEHOLDERS):
        reason = f"is an example's; {_MAKE_ONE}"
    elif len(secret) < _LEAST_CHARACTERS:
        reason = f"has {len(secret)} characters, and fewer than {_LEAST_CHARACTERS} can be guessed; {_MAKE_ONE}"
    elif len(set(secret)) < _LEAST_DIFFERENT:
        reason = f"repeats {len(set(secret))} characters and can be guessed; {_MAKE_ONE}"
    else:
        return []
    return [f"settings: identity.secret: {reason}"]


def advice(settings: Settings, environment: Mapping[str, str]) -> list[Advice]:
    """What an operator should know of these settings; empty where nothing is odd."""
    return [*_admin_port(settings.server.admin_host, environment.get("VLMGW_ADMIN_TOKEN")), *_secret(settings)]


def key_advice(settings: Settings, policies: PolicySet, now_s: float) -> list[Advice]:
    """The same of who is let in: everybody from anywhere, or nobody any more. ``now_s`` in seconds since 1970."""
    if settings.jwt.issuer is not None:
        return []
    server = settings.server
    if not policies.has_keys:
        if not server.tcp or server.tls_client_ca_file is not None or _is_loopback(server.host):
            return []
        text = (
            f"{server.host} is reached from other machines, and no policy has keys: whoever gets there may use the "
            "backends; give keys (vlm-gateway hash-key makes them), or listen on 127.0.0.1"
        )
        return [Advice("server.host", text)]
    if any(key.expires_s is None or now_s < key.expires_s for key, _ in policies.keys.values()):
        return []
    text = "every API key of the policies has expired, so every request is refused; vlm-gateway hash-key makes new ones"
    return [Advice("keys", text)]


def _admin_port(host: str, token: str | None) -> list[Advice]:
    if _is_loopback(host):
        return []
    if token is None:
        text = (
            f"{host} is reached from other machines, and VLMGW_ADMIN_TOKEN is not set: whoever gets there may drain "
            "and reload this gateway and read its configuration; set the token, or listen on 127.0.0.1"
        )
        return [Advice("server.admin_host", text)]
    if len(token) < _LEAST_CHARACTERS:
        text = f"has {len(token)} characters, and fewer than {_LEAST_CHARACTERS} can be guessed; {_MAKE_ONE}"
        return [Advice("VLMGW_ADMIN_TOKEN", text)]
    return []


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _secret(settings: Settings) -> list[Advice]:
    # Processes of one gateway share a secret of its own.
    if settings.redis.url is None or settings.identity.secret is not None or settings.server.processes > 1:
        return []
    text = (
        "is not set beside redis.url: every replica, and every restart, makes its own, so none recognises the images "
        f"of another; give all of them one, {_MAKE_ONE}"
    )
    return [Advice("identity.secret", text)]
