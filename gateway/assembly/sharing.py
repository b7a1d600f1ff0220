"""What replicas share, from settings: budgets and prepared images. None of it exists where nothing is configured.

Decided here: which setting becomes which argument, how the log tells that a store is away. Not decided here: defaults
(``config``), meaning (``state``).
"""

from __future__ import annotations

import hmac
import random
import secrets
from functools import partial

from gateway.config.settings import Settings
from gateway.ports import Clock
from gateway.quota.store import Store
from gateway.state.memory import MemoryStore
from gateway.state.redis_cache import CacheLimits, RedisCache
from gateway.state.redis_hints import Count, RedisHints
from gateway.state.scripts import SCRIPTS
from gateway.state.settings import RedisMode, RedisSettings
from gateway.state.shared import Observe, SharedStore
from gateway.state.split import SplitStore
from gateway.telemetry.log import JsonLog
from gateway.upstream.service import UpstreamService


def redis_settings(settings: Settings) -> RedisSettings | None:
    """The shared store's own settings; None where budgets stay in memory."""
    r = settings.redis
    if r.url is None:
        return None
    nodes = (node.rpartition(":") for node in r.nodes)
    return RedisSettings(
        url=r.url,
        mode=RedisMode(r.mode),
        nodes=tuple((host.strip("[]"), int(port)) for host, _, port in nodes),
        sentinel_service=r.sentinel_service,
        username=r.username,
        password=r.password,
        password_file=r.password_file,
        sentinel_username=r.sentinel_username,
        sentinel_password=r.sentinel_password,
        tls_ca_file=r.tls_ca_file,
        tls_certificate_file=r.tls_certificate_file,
        tls_key_file=r.tls_key_file,
        prefix=r.prefix,
        deadline_s=r.deadline_s,
        connect_timeout_s=r.connect_timeout_s,
        retry_s=r.retry_s,
        lease_s=r.lease_s,
        min_replicas=max(r.min_replicas, settings.server.processes),
    )


def shared_cache(settings: Settings) -> tuple[RedisSettings, CacheLimits] | None:
    """Where prepared images are shared and how much of them; None where they are not."""
    m, store = settings.media, redis_settings(settings)
    if not m.shared_cache_bytes:
        return None
    if m.shared_cache_url is not None:
        store = RedisSettings(
            m.shared_cache_url, prefix=settings.redis.prefix, connect_timeout_s=settings.redis.connect_timeout_s
        )
    assert store is not None, "config has seen to an address"
    limits = CacheLimits(m.shared_cache_bytes, ttl_s=m.shared_cache_ttl_s, deadline_s=m.shared_cache_deadline_s)
    return store, limits


def open_shared_cache(settings: Settings, clock: Clock, log: JsonLog) -> RedisCache | None:
    """The cache of prepared images that replicas share, not yet started; None where there is none."""
    shared = shared_cache(settings)
    if shared is None:
        return None
    return RedisCache.open(*shared, clock, random.random, partial(log.event, "warning", store="prepared images"))


def shared_budgets(settings: Settings, clock: Clock, log: JsonLog, observe: Observe) -> SharedStore | None:
    """The store that replicas share; None where budgets stay in memory. Names this process for as long as it lives."""
    store = redis_settings(settings)
    if store is None:
        return None

    def say(event: str, **facts: object) -> None:
        log.event("info" if event == "store_back" else "warning", event, store="budgets", **facts)

    from gateway.state.redis import RedisWire  # noqa: PLC0415  # a start without Redis must not wait for its client

    wire = RedisWire(store, SCRIPTS)
    name = replica_name(settings.identity.secret)
    return SharedStore(wire, store, clock, random.random, replica=name, say=say, observe=observe)


def replica_name(secret: str | None) -> str:
    """Twelve random digits, and behind a dot eight that tell which secret the replica has, and nobody what it is.

    Replicas of one store compare them (``state.shared``).
    """
    name = secrets.token_hex(6)
    return name if secret is None else f"{name}.{hmac.digest(secret.encode(), b'which secret', 'sha256').hex()[:8]}"


def own_budgets(settings: Settings) -> Store:
    """Where budgets are kept that no Redis keeps: the whole of each here, or one process's part of it."""
    processes = settings.server.processes
    return MemoryStore() if processes == 1 else SplitStore(processes)


def open_hints(
    settings: Settings, upstream: UpstreamService, clock: Clock, log: JsonLog, count: Count
) -> RedisHints | None:
    """What replicas tell each other of images, not yet started; None where there is no Redis, or no wish for it."""
    store = redis_settings(settings)
    if store is None or not settings.redis.share_hints:
        return None
    say = partial(log.event, "warning", store="hints")
    hints = RedisHints.open(store, clock, random.random, say, upstream.hear, count)
    upstream.on_images = hints.tell
    return hints


def shared_notes(shared: SharedStore | None) -> list[str]:
    """One line for ``/readyz?verbose``."""
    if shared is None:
        return []
    facts = shared.facts()
    if facts.is_degraded:
        return [f"[!]shared_store away: this replica decides by 1/{facts.replicas} of every limit"]
    return [f"[+]shared_store {facts.replicas} replicas"]
