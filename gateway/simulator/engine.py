"""The imagined accelerator: admission, a queue, prefill one request at a time, decode in steps.

Decided here: when a request may start (sequences and KV blocks, first come first served), how long it takes (by the
cost model and what the caches hold), what is counted. Not decided: what it says, or in which contract.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.simulator.caches import BlockPool, Lease, WeightedLru, block_hashes
from gateway.simulator.cost import CostModel
from gateway.simulator.metrics import Tally
from gateway.simulator.prompt import Prompt
from gateway.simulator.refusal import EngineLost, QueueFull
from gateway.simulator.settings import SimulatorSettings


@dataclass(frozen=True, slots=True)
class Load:
    """A moment's load; `kv_usage` is 0 to 1."""

    running: int
    waiting: int
    waiting_tokens: int
    kv_usage: float
    used_tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    granted: asyncio.Future[Lease]
    hashes: list[bytes]
    blocks: int
    usable_hits: int
    prompt_tokens: int


class Ticket:
    """One admitted request."""

    def __init__(self, engine: "Engine", prompt: Prompt, lease: Lease, block_size: int) -> None:
        self._engine = engine
        self._prompt = prompt
        self.cached_tokens = lease.hit_blocks * block_size
        self.created_cache_tokens = prompt.length - prompt.length % block_size - self.cached_tokens

    async def prefill(self) -> None:
        """Encode what the encoder cache lacks and compute what the prefix cache lacks; ends with the first token."""
        await self._engine.compute_prompt(self._prompt, self.cached_tokens)

    async def decode_step(self) -> None:
        await self._engine.decode_step()


class Engine:
    """State of one engine: queue, KV, encoder cache, whether it is paused or gone."""

    def __init__(self, settings: SimulatorSettings, tally: Tally) -> None:
        self._settings = settings
        self._tally = tally
        self._cost = CostModel(
            encode_ms_per_patch=settings.encode_ms_per_patch,
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
            decode_tokens_per_s=settings.decode_tokens_per_s,
            batch_slope=settings.batch_slope,
            speed=settings.speed,
        )
        self.pool = BlockPool(settings.kv_blocks)
        self.encoder_cache: WeightedLru[bool] = WeightedLru(settings.encoder_cache_tokens)
        self._queue: deque[_Waiting] = deque()
        self._running = 0
        self._accelerator = asyncio.Lock()
        self._unpaused = asyncio.Event()
        self._unpaused.set()
        self._lost = asyncio.Event()
        self._hung = False

    @property
    def is_paused(self) -> bool:
        return not self._unpaused.is_set()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    def load(self) -> Load:
        used = self.pool.used_blocks
        return Load(
            running=self._running,
            waiting=len(self._queue),
            waiting_tokens=sum(entry.prompt_tokens for entry in self._queue),
            kv_usage=used / self.pool.capacity_blocks,
            used_tokens=used * self._settings.block_size,
        )

    @asynccontextmanager
    async def admitted(self, prompt: Prompt, output_tokens: int, choices: int = 1) -> AsyncIterator[Ticket]:
        """Hold room for a request while the block runs; waits for it in the queue.

        Raises QueueFull at once when the queue is full, EngineLost when the engine ends while waiting.
        """
        entry = self._entry(prompt, output_tokens, choices)
        self.refuse_when_full()
        self._queue.append(entry)
        self._serve_queue()
        try:
            lease = await self._granted(entry)
        except BaseException:
            self._withdraw(entry)
            raise
        hit_tokens = lease.hit_blocks * self._settings.block_size
        self._tally.prefix_queries += prompt.length
        self._tally.prefix_hits += hit_tokens
        self._tally.prompt_tokens += prompt.length
        try:
            yield Ticket(self, prompt, lease, self._settings.block_size)
        finally:
            self._release(lease)

    def refuse_when_full(self) -> None:
        """Raise QueueFull when a request arriving now would have to wait and may not. One that finds room at once is
        never refused, even with a limit of 0."""
        limit = self._settings.max_num_queued_reqs
        is_busy = bool(self._queue) or self._running >= self._settings.max_num_seqs or self.is_paused
        if limit is not None and is_busy and len(self._queue) >= limit:
            self._tally.queue_rejections += 1
            raise QueueFull

    def pause(self) -> None:
        self._unpaused.clear()

    def resume(self) -> None:
        self._unpaused.set()
        self._serve_queue()

    def lose(self) -> None:
        """End every running and waiting request with EngineLost."""
        self._lost.set()
        for entry in self._queue:
            if not entry.granted.cancelled():
                entry.granted.set_exception(EngineLost())
        self._queue.clear()

    def hang(self) -> None:
        """From now on nothing advances and nothing ends."""
        self._hung = True

    async def compute_prompt(self, prompt: Prompt, cached_tokens: int) -> None:
        async with self._accelerator:
            encode_s = 0.0
            for span, picture in zip(prompt.spans, prompt.pictures, strict=True):
                if span.offset + span.length <= cached_tokens:
                    continue
                self._tally.encoder_queries += 1
                if self.encoder_cache.get(span.identifier):
                    self._tally.encoder_hits += 1
                    continue
                encode_s += self._cost.encode_s(picture.fitted.patches)
                self.encoder_cache.put(span.identifier, True, span.length)
            await self._pass_time(encode_s + self._cost.prefill_s(prompt.length - cached_tokens))

    async def decode_step(self) -> None:
        await self._pass_time(self._cost.decode_step_s(self._running))

    def _entry(self, prompt: Prompt, output_tokens: int, choices: int) -> _Waiting:
        size = self._settings.block_size
        hashes = block_hashes(prompt.token_ids, (*prompt.spans, *prompt.films), prompt.salt, size)
        tail = prompt.length - len(hashes) * size + output_tokens
        blocks = len(hashes) + choices * -(-tail // size)
        granted: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        usable_hits = max(0, prompt.length - 1) // size
        return _Waiting(granted, hashes, min(blocks, self.pool.capacity_blocks), usable_hits, prompt.length)

    async def _granted(self, entry: _Waiting) -> Lease:
        if entry.granted.done() and not self.is_lost:
            return entry.granted.result()
        lease = await entry.granted
        if self.is_lost:
            raise EngineLost
        return lease

    def _withdraw(self, entry: _Waiting) -> None:
        if entry in self._queue:
            self._queue.remove(entry)
        elif not entry.granted.cancelled() and entry.granted.exception() is None:
            self._release(entry.granted.result())

    def _release(self, lease: Lease) -> None:
        self._running -= 1
        self.pool.release(lease)
        self._serve_queue()

    def _serve_queue(self) -> None:
        while self._queue and not self.is_paused and self._running < self._settings.max_num_seqs:
            head = self._queue[0]
            if head.granted.cancelled():  # it left, and has not been withdrawn yet
                self._queue.popleft()
                continue
            lease = self.pool.acquire(head.hashes, head.blocks, head.usable_hits)
            if lease is None:
                return
            self._queue.popleft()
            self._running += 1
            head.granted.set_result(lease)

    async def _pass_time(self, seconds: float) -> None:
        await self._unpaused.wait()
        if self._hung:
            await asyncio.get_running_loop().create_future()
        if self.is_lost:
            raise EngineLost
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._lost.wait()
        except TimeoutError:
            return
        raise EngineLost
