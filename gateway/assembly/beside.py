"""What stands beside the gateway, tried once: the store that replicas share, the cache, the collector of traces.

Decided here: what counts as there: a store that lets us in and answers PING, a collector whose port accepts. Not
decided here: how the outcome is shown (``doctor``), whether a user may do all that is needed (the first requests tell).
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.assembly.sharing import redis_settings, shared_cache
from gateway.config.settings import Settings
from gateway.state.redis import RedisWire
from gateway.state.settings import RedisSettings
from gateway.state.wire import StoreUnavailable


@dataclass(frozen=True, slots=True)
class Neighbour:
    """``setting`` names it; ``problem`` is empty where it is there. Addresses are not told: they may hold passwords."""

    setting: str
    problem: str = ""


async def neighbours(settings: Settings) -> list[Neighbour]:
    """One for each that is configured, all tried at the same time and none longer than its own setting allows."""
    tries = []
    store, cache = redis_settings(settings), shared_cache(settings)
    if store is not None:
        tries.append(_store("redis.url", store))
    if cache is not None and settings.media.shared_cache_url is not None:
        tries.append(_store("media.shared_cache_url", cache[0]))
    if settings.tracing.otlp_endpoint is not None:
        tries.append(_collector(settings.tracing.otlp_endpoint, settings.tracing.timeout_s))
    return await asyncio.gather(*tries)


async def _store(setting: str, settings: RedisSettings) -> Neighbour:
    wire = RedisWire(settings)
    try:
        await wire.open()
    except StoreUnavailable as error:
        return Neighbour(setting, str(error))
    finally:
        await wire.close()
    return Neighbour(setting)


async def _collector(endpoint: str, timeout_s: float) -> Neighbour:
    setting = "tracing.otlp_endpoint"
    parts = urlsplit(endpoint)
    try:
        async with asyncio.timeout(timeout_s):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except TimeoutError:
        return Neighbour(setting, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return Neighbour(setting, f"cannot be reached: {_reason(error)}")
    writer.close()
    return Neighbour(setting)


def _reason(error: OSError) -> str:
    """asyncio puts the address into the words of a refused connection; the number says it alone."""
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)
