"""What the shared store is told: where it is and how long it may take. Checked by ``config``, mapped by ``sharing``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RedisMode(StrEnum):
    """What the address leads to."""

    STANDALONE = "standalone"
    CLUSTER = "cluster"
    SENTINEL = "sentinel"


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Address, credentials and times. ``nodes`` are (host, port); times are seconds; see ``config.settings``."""

    url: str
    mode: RedisMode = RedisMode.STANDALONE
    nodes: tuple[tuple[str, int], ...] = ()
    sentinel_service: str = "mymaster"
    username: str | None = None
    password: str | None = None
    password_file: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    tls_ca_file: str | None = None
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    prefix: str = "vlmgw"
    deadline_s: float = 0.05
    connect_timeout_s: float = 1.0
    retry_s: float = 1.0
    lease_s: float = 15.0
    min_replicas: int = 1
