"""Prepared images in Redis, for all replicas: a place that may forget, be slow or be away, and never fails a request.

Decided here: how long an entry stays, that entries together keep to a budget of bytes, and how much may wait to be
written. Keys are the caller's, opaque; all stand in one slot, beside a sorted set of their ends and a hash of their
sizes, so that one script can keep the books: what has expired leaves them, and what ends first makes room. Where the
server evicts by itself as well (``maxmemory``), an entry counts until it would have expired. The connection is this
cache's own: megabytes on their way must not stand before a budget's few bytes.

Not decided here: what a value means and whether it is true (``media.second_tier``), when the connection is opened
again (``keeper``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gateway.ports import Clock
from gateway.state.keeper import Keeper, Say
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command, Reply, Script, StoreUnavailable

# Of what waits to be written; beyond it entries are dropped, for a cache must not hold up what is read.
_MAX_PENDING_BYTES = 4 * 1024 * 1024
_PUT_DEADLINE_S = 1.0
# KEYS: entry, ends, sizes. ARGV: value, milliseconds to live, budget in bytes. Answers 1 if the value was kept.
# The value is written first: a server without memory refuses that, but nothing of a script that has written already.
_PUT = Script.of(
    "put",
    """
local entry, ends, sizes = KEYS[1], KEYS[2], KEYS[3]
local size, budget = #ARGV[1], tonumber(ARGV[3])
if redis.pcall('SET', entry, ARGV[1], 'PX', ARGV[2]).err then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local total = tonumber(redis.call('HGET', sizes, 'total') or 0)

local function leave(name)
  total = total - tonumber(redis.call('HGET', sizes, name) or 0)
  redis.call('HDEL', sizes, name)
  redis.call('ZREM', ends, name)
end

leave(entry)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 128)) do leave(name) end
while total + size > budget do
  local first = redis.call('ZRANGE', ends, 0, 0)[1]
  if not first then break end
  leave(first)
  redis.call('UNLINK', first)
end
redis.call('ZADD', ends, now + ARGV[2], entry)
redis.call('HSET', sizes, entry, size, 'total', total + size)
return 1
""",
)


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """``total_bytes`` of all entries, ``entry_bytes`` of one; ``deadline_s`` of a look-up, ``ttl_s`` of an entry."""

    total_bytes: int
    entry_bytes: int = 4 * 1024 * 1024
    ttl_s: float = 3600.0
    deadline_s: float = 0.1


class RedisCache:
    """``media.second_tier.SecondTier`` over a link that its keeper holds open."""

    def __init__(self, keeper: Keeper, prefix: str, limits: CacheLimits) -> None:
        self._keeper = keeper
        self._link = keeper.link
        self._limits = limits
        self._base = f"{prefix}:{{pictures}}:"
        self._pending_bytes = 0

    @staticmethod
    def open(
        settings: RedisSettings, limits: CacheLimits, clock: Clock, chance: Callable[[], float], say: Say
    ) -> RedisCache:
        """One with a connection of its own, made by ``start``. Never raises; what becomes of it is said."""
        from gateway.state.redis import RedisWire  # noqa: PLC0415  # a start without Redis must not wait for its client

        keeper = Keeper(RedisWire(settings), clock, chance, say, deadline_s=limits.deadline_s, retry_s=settings.retry_s)
        return RedisCache(keeper, settings.prefix, limits)

    async def start(self, patience_s: float) -> None:
        """Connect, now or later; come back after ``patience_s`` at the latest."""
        await self._keeper.start(patience_s)

    async def stop(self) -> None:
        await self._keeper.stop()

    async def get(self, key: bytes) -> bytes | None:
        """What is kept, unless it takes longer than the deadline. Never raises but for cancellation."""
        if not self._link.is_up:
            return None
        try:
            value = await self._link.call(Command(("GET", self._name(key))), self._limits.deadline_s)
        except StoreUnavailable:
            return None
        return value if isinstance(value, bytes) else None

    def put(self, key: bytes, value: bytes) -> None:
        """Write it behind the caller's back, or drop it: too large, too much waiting already, nobody there."""
        size = len(value)
        if not self._link.is_up or size > min(self._limits.entry_bytes, self._limits.total_bytes):
            return
        if self._pending_bytes + size > _MAX_PENDING_BYTES:
            return
        keys = [self._name(key), f"{self._base}ends", f"{self._base}sizes"]
        command = Command.run(_PUT, keys, value, round(self._limits.ttl_s * 1000), self._limits.total_bytes)
        self._pending_bytes += size
        self._link.ask([command], _PUT_DEADLINE_S).add_done_callback(lambda answer: self._written(answer, size))

    def _written(self, answer: asyncio.Future[list[Reply]], size: int) -> None:
        self._pending_bytes -= size
        if not answer.cancelled():
            answer.exception()  # looked at: a value that was not kept is no event

    def _name(self, key: bytes) -> str:
        return self._base + key.hex()
