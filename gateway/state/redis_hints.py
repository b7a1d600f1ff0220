"""Who holds which image, told among replicas through Redis: small, late, and never needed.

Replicas that share nothing agree by rendezvous; a hint saves the encoding where they cannot, because a load bound or an
outage gave an image another home. Decided here: what is told again and when, how much is kept (``_ENTRIES`` beats of at
most ``_IMAGES_PER_BEAT`` images in one capped stream, gone ``_TTL_S`` after the last), and that nothing of it is waited
for by a request. What is heard is a belief like any other: it comes from replicas of this deployment, and a false one
costs an encoding. It never makes an image go as its id alone (``routing.sent_ids`` hears nothing of it).

Not decided here: what is made of a hint (``upstream``), when the connection is opened again (``keeper``).
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gateway.ports import Clock
from gateway.state.keeper import Keeper, Say
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command, Reply, Script, StoreUnavailable

# Backend, scope, images with their tokens.
Hear: TypeAlias = Callable[[str, int, Sequence[tuple[bytes, int]]], None]
# "told" or "heard", and how many images.
Count: TypeAlias = Callable[[str, int], None]

BEAT_S = 1.0
_DEADLINE_S = 1.0
_TTL_S = 600.0
_ENTRIES = 512
_IMAGES_PER_BEAT = 256
_READ_PER_BEAT = 64
_AGAIN_S = 60.0
_TOLD_LIMIT = 8192
_DIGEST_BYTES = 16
_MAX_TOKENS = 1 << 24

# KEYS: the stream. ARGV: what is told (may be empty), by whom, where to read on, entries kept, milliseconds to live,
# entries read. Answers where to read on next, then what others told.
_BEAT = Script.of(
    "hints",
    """
local key = KEYS[1]
if #ARGV[1] > 0 then
  redis.call('XADD', key, 'MAXLEN', '~', ARGV[4], '*', 'by', ARGV[2], 'told', ARGV[1])
  redis.call('PEXPIRE', key, ARGV[5])
end
local answer = {ARGV[3]}
for _, entry in ipairs(redis.call('XRANGE', key, ARGV[3], '+', 'COUNT', ARGV[6])) do
  answer[1] = '(' .. entry[1]
  if entry[2][2] ~= ARGV[2] then answer[#answer + 1] = entry[2][4] end
end
return answer
""",
)


class RedisHints:
    """One replica's ear and mouth. ``tell`` is synchronous and cheap; all else happens once in ``beat_s``."""

    def __init__(self, keeper: Keeper, prefix: str, clock: Clock, hear: Hear, count: Count, beat_s: float) -> None:
        self._keeper = keeper
        self._key = f"{prefix}:{{hints}}:images"
        self._now_s = clock.now_s
        self._hear = hear
        self._count = count
        self._beat_s = beat_s
        self._name = secrets.token_hex(6)
        self._read_from = "-"
        self._pending: OrderedDict[tuple[str, int, bytes], int] = OrderedDict()
        self._told_s: OrderedDict[tuple[str, int, bytes], float] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    def open(
        settings: RedisSettings,
        clock: Clock,
        chance: Callable[[], float],
        say: Say,
        hear: Hear,
        count: Count,
        *,
        beat_s: float = BEAT_S,
    ) -> RedisHints:
        """One with a connection of its own, made by ``start``. Never raises; what becomes of it is said."""
        from gateway.state.redis import RedisWire  # noqa: PLC0415  # a start without Redis must not wait for its client

        keeper = Keeper(
            RedisWire(settings, (_BEAT,)), clock, chance, say, deadline_s=_DEADLINE_S, retry_s=settings.retry_s
        )
        return RedisHints(keeper, settings.prefix, clock, hear, count, beat_s)

    async def start(self, patience_s: float) -> None:
        """Connect, now or later, and begin to listen; come back after ``patience_s`` at the latest."""
        await self._keeper.start(patience_s)
        self._task = asyncio.get_running_loop().create_task(self._keep_beating())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._keeper.stop()

    def tell(self, backend: str, scope: int, images: Sequence[bytes], tokens: Sequence[int]) -> None:
        """These images were given to this backend; told with the next beat, and not again for a while."""
        now_s = self._now_s()
        for index, digest in enumerate(images):
            hint = (backend, scope, digest)
            told_s = self._told_s.get(hint)
            if told_s is not None and now_s - told_s < _AGAIN_S:
                continue
            self._told_s[hint] = now_s
            self._told_s.move_to_end(hint)
            self._pending[hint] = tokens[index] if index < len(tokens) else 0
        while len(self._told_s) > _TOLD_LIMIT:
            self._told_s.popitem(last=False)
        while len(self._pending) > _IMAGES_PER_BEAT:
            self._pending.popitem(last=False)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            if self._keeper.link.is_up:
                await self._beat()

    async def _beat(self) -> None:
        pending, self._pending = self._pending, OrderedDict()
        told = _written(pending) if pending else b""
        command = Command.run(
            _BEAT, [self._key], told, self._name, self._read_from, _ENTRIES, round(_TTL_S * 1000), _READ_PER_BEAT
        )
        try:
            answer = await self._keeper.link.call(command, _DEADLINE_S)
        except StoreUnavailable:
            return  # hints that were lost are not worth a second try
        if pending:
            self._count("told", len(pending))
        self._listen(answer)

    def _listen(self, answer: Reply) -> None:
        if not isinstance(answer, list) or not answer or not isinstance(answer[0], bytes):
            return
        self._read_from = answer[0].decode("ascii", "replace")
        for entry in answer[1:]:
            if isinstance(entry, bytes):
                for backend, scope, images in read(entry):
                    self._hear(backend, scope, images)
                    self._count("heard", len(images))


def _written(pending: OrderedDict[tuple[str, int, bytes], int]) -> bytes:
    """JSON: backend -> scope -> digest in hexadecimal digits -> tokens."""
    told: dict[str, dict[str, dict[str, int]]] = {}
    for (backend, scope, digest), tokens in pending.items():
        told.setdefault(backend, {}).setdefault(str(scope), {})[digest.hex()] = tokens
    return json.dumps(told, separators=(",", ":")).encode()


def read(entry: bytes) -> list[tuple[str, int, list[tuple[bytes, int]]]]:
    """What another replica told; whatever has another shape is left out."""
    try:
        told: object = json.loads(entry)
    except (ValueError, RecursionError):
        return []
    found = []
    for backend, scopes in told.items() if isinstance(told, dict) else ():
        for scope, images in scopes.items() if isinstance(scopes, dict) else ():
            if not isinstance(images, dict) or not scope.isascii() or not scope.removeprefix("-").isdigit():
                continue
            pairs = [pair for digest, tokens in images.items() if (pair := _image(digest, tokens)) is not None]
            if pairs and len(scope) <= 20:
                found.append((backend, int(scope), pairs[:_IMAGES_PER_BEAT]))
    return found


def _image(digest: str, tokens: object) -> tuple[bytes, int] | None:
    try:
        content = bytes.fromhex(digest)
    except ValueError:
        return None
    is_count = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens < _MAX_TOKENS
    if len(content) != _DIGEST_BYTES or not is_count:
        return None
    return content, tokens if isinstance(tokens, int) else 0
