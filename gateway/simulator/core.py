"""One engine put together: what every API shape of a contract needs to answer a request.

A contract module turns a body into pieces and sampling, asks `prompt()` for the expanded prompt, composes replies and
iterates over a `Run`; how tokens and usage look on the wire is the contract's alone.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gateway.simulator import disaggregation, video
from gateway.simulator.answer import Logprobs, Reply
from gateway.simulator.engine import Engine
from gateway.simulator.fields import JsonObject
from gateway.simulator.metrics import Gauges, Tally
from gateway.simulator.pictures import PictureLoader
from gateway.simulator.prompt import Piece, Prompt, assemble, images_of, videos_of
from gateway.simulator.record import FaultPlan, Record, Recorder
from gateway.simulator.refusal import EngineLost
from gateway.simulator.settings import SimulatorSettings


@dataclass(frozen=True, slots=True)
class Emitted:
    """One generated token. `choice` is its answer, `position` its place there; `reply` is set on the answer's last."""

    choice: int
    position: int
    piece: str
    finished: Reply | None


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    created_cache_tokens: int
    image_tokens: int
    video_tokens: int = 0


class Run:
    """The computation of one request: iterate `tokens()` once; `usage` grows with it."""

    def __init__(self, core: "Core", prompt: Prompt, replies: Sequence[Reply], record: Record) -> None:
        self.prompt = prompt
        self.replies = tuple(replies)
        self.logprobs = Logprobs(prompt, core.settings.seed)
        self.drift_tokens = 0
        self.is_prefilled = False
        self.hand_over: Callable[[], Awaitable[None]] | None = None
        self._core = core
        self._record = record
        self._completion_tokens = 0
        self._cached_tokens = 0
        self._created_cache_tokens = 0

    @property
    def usage(self) -> Usage:
        return Usage(
            prompt_tokens=self.prompt.length + self.drift_tokens,
            completion_tokens=self._completion_tokens,
            cached_tokens=self._cached_tokens,
            created_cache_tokens=self._created_cache_tokens,
            image_tokens=self.prompt.image_tokens + (self.drift_tokens if self.prompt.pictures else 0),
            video_tokens=self.prompt.video_tokens,
        )

    async def tokens(self) -> AsyncGenerator[Emitted]:
        """Every token of every choice, a decode step advancing all unfinished ones. Raises QueueFull or EngineLost."""
        core, tally = self._core, self._core.tally
        started_s = time.monotonic()
        longest = max(len(reply.pieces) for reply in self.replies)
        self._record.prompt_tokens, self._record.image_tokens = self.prompt.length, self.prompt.image_tokens
        async with core.engine.admitted(self.prompt, longest, len(self.replies)) as ticket:
            tally.queue_s.observe(time.monotonic() - started_s)
            self._cached_tokens, self._created_cache_tokens = ticket.cached_tokens, ticket.created_cache_tokens
            self._record.cached_tokens = ticket.cached_tokens
            if not self.is_prefilled:
                await ticket.prefill()
            if self.hand_over is not None:
                await self.hand_over()
            last_s = time.monotonic()
            tally.first_token_s.observe(last_s - started_s)
            for position in range(longest):
                if position:
                    await ticket.decode_step()
                    tally.inter_token_s.observe(time.monotonic() - last_s)
                    last_s = time.monotonic()
                for emitted in self._step(position):
                    yield emitted
        tally.whole_request_s.observe(time.monotonic() - started_s)
        tally.request_prompt_tokens.observe(self.prompt.length)
        tally.request_generation_tokens.observe(self._completion_tokens)
        for reply in self.replies:
            reason = "length" if reply.finish_reason == "length" else "stop"
            tally.finished[reason] += 1

    async def complete(self) -> None:
        """Run to the end without looking at tokens."""
        async with aclosing(self.tokens()) as generated:
            async for _ in generated:
                pass

    def _step(self, position: int) -> list[Emitted]:
        emitted = []
        for choice, reply in enumerate(self.replies):
            if position >= len(reply.pieces):
                continue
            self._completion_tokens += 1
            self._core.tally.generation_tokens += 1
            self._record.output_tokens += 1
            is_last = position == len(reply.pieces) - 1
            emitted.append(Emitted(choice, position, reply.pieces[position], reply if is_last else None))
        return emitted


class Core:
    """All state of one simulator process."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self.settings = settings
        self.tally = Tally()
        self.engine = Engine(settings, self.tally)
        self.loader = PictureLoader(settings)
        self.recorder = Recorder(settings.record)
        self.faults = FaultPlan(settings.seed)
        self.started_s = time.time()
        self.is_draining = False
        self.responses: dict[str, JsonObject] = {}
        self.admin_calls: list[str] = []
        self.in_flight = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self._random = random.Random(settings.seed)

    def new_id(self) -> str:
        """Sixteen hex digits, the same sequence for the same seed."""
        return f"{self._random.getrandbits(64):016x}"

    async def prompt(
        self,
        pieces: Sequence[Piece],
        salt: str | None,
        last_user_text: str,
        record: Record,
        *,
        is_cached: bool = True,
    ) -> Prompt:
        """Load the pictures (through the multimodal cache or not) and expand the prompt. Raises Refusal."""
        images = images_of(pieces)
        if any(image.embedded and disaggregation.read_picture(image, self.settings) is None for image in images):
            self.engine.lose()
            raise EngineLost
        loaded = await self.loader.load(images, is_cached=is_cached)
        record.saw(loaded)
        settings = self.settings
        films = [
            (film.identifier, video.expand(film, settings.geometry_family, settings.grid))
            for film in await video.load(videos_of(pieces), settings)
        ]
        return assemble(pieces, [entry.picture for entry in loaded], salt, last_user_text, films)

    def gauges(self) -> Gauges:
        load = self.engine.load()
        return Gauges(
            model=self.settings.served_model_name,
            running=load.running,
            waiting=load.waiting,
            kv_usage=load.kv_usage,
            used_tokens=load.used_tokens,
            block_size=self.settings.block_size,
            kv_blocks=self.settings.kv_blocks,
            max_model_len=self.settings.max_model_len,
            mm_queries=self.loader.queries,
            mm_hits=self.loader.hits,
        )

    def close(self) -> None:
        self.loader.close()
        self.recorder.close()
