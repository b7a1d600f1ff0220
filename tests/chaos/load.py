"""The mixed load: lanes that ask one request after the other, each of another kind, reproducible from a seed.

Decided here: what is asked and how an answer is taken in. Not decided here: whether it is right (``answers``). A lane
that finds nobody listening asks the next gateway with the same request: it was certainly not taken. One whose
connection breaks later asks no more: it may have run.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.chaos.answers import IMAGES, MESSAGES, STREAMS, Answer, Kind, Question
from tests.simulator import drawn
from tests.simulator.process import chat, image_part

_MIX: Sequence[Kind] = (
    Kind.TEXT, Kind.IMAGE, Kind.STREAM, Kind.REMOTE, Kind.BUDGET, Kind.MESSAGES, Kind.IMAGE, Kind.STREAM,
    Kind.MESSAGES_STREAM,
)  # fmt: skip
PATIENCE_S = 240.0  # longer than any deadline of the gateway under test
KEYS = {"usual": "chaos-usual-key", "small": "chaos-small-key", "crowd": "chaos-crowd-key"}
_MAX_TOKENS = 80
_PAUSE_AFTER_LOSS_S = 0.2


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go: gateways in order of preference, and an origin of remote pictures (``None``: none)."""

    urls: Sequence[str]
    origin: str | None = None


@dataclass(slots=True)
class Load:
    """``run`` asks until ``stop``; ``answers`` grow meanwhile. ``pause_s`` between two requests of a lane."""

    target: Target
    name: str
    seed: int
    lanes: int = 6
    pause_s: float = 0.02
    mix: Sequence[Kind] = _MIX
    answers: list[Answer] = field(default_factory=list)
    asked: int = 0
    _stopping: bool = False

    async def run(self) -> None:
        """All lanes, until they were told to stop and every answer is in."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            asyncio.TaskGroup() as all_of,
        ):
            for lane in range(self.lanes):
                all_of.create_task(self._lane(session, lane))

    def stop(self) -> None:
        self._stopping = True

    async def _lane(self, session: aiohttp.ClientSession, lane: int) -> None:
        rng = random.Random(f"{self.seed} {self.name} {lane}")
        for number in itertools.count():
            if self._stopping:
                return
            kind = self.mix[(number + lane) % len(self.mix)]
            if kind is Kind.REMOTE and self.target.origin is None:
                kind = Kind.TEXT
            self.asked += 1
            self.answers.append(await ask(session, self.target, question(f"{self.name}-{lane}-{number}", kind, rng)))
            # Where nobody listens, an answer comes at once; a client would not ask at once again.
            pause_s = self.pause_s if self.answers[-1].lost is None else _PAUSE_AFTER_LOSS_S
            await asyncio.sleep(pause_s * rng.uniform(0.5, 1.5))


def question(request_id: str, kind: Kind, rng: random.Random) -> Question:
    colour = None
    if kind in IMAGES:  # few colours, so that some pictures are known and some are not
        colour = f"#{40 + 8 * rng.randrange(12):02x}5ac8"
    return Question(request_id, kind, f"words of {request_id} {rng.randrange(10**6)}", colour)


async def ask(session: aiohttp.ClientSession, target: Target, asked: Question) -> Answer:
    """Ask, at the first gateway that listens. Never raises for what a network does."""
    answer = Answer(asked, time.monotonic())
    first = hash_of(asked.request_id) % len(target.urls)
    for number in range(len(target.urls)):
        url = target.urls[(first + number) % len(target.urls)]
        answer.lost = None
        try:
            await _exchange(session, url, target, answer)
            break
        except aiohttp.ClientConnectorError as error:
            answer.lost = f"refused: {error.os_error.strerror}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            answer.lost = f"broken: {error!r} after status {answer.status} and {len(answer.body)} bytes"
            break
    answer.ended_s = time.monotonic()
    return answer


def hash_of(text: str) -> int:
    """The same in every run, which ``hash`` is not."""
    return random.Random(text).randrange(1 << 30)


async def _exchange(session: aiohttp.ClientSession, url: str, target: Target, answer: Answer) -> None:
    asked = answer.question
    path = "/v1/messages" if asked.kind in MESSAGES else "/v1/chat/completions"
    key = KEYS["small" if asked.kind is Kind.BUDGET else "usual"]
    headers = {"x-request-id": asked.request_id, "authorization": f"Bearer {key}"}
    async with session.post(f"{url}{path}", json=_body(asked, target), headers=headers) as response:
        answer.status, answer.headers = response.status, response.headers
        chunks = []
        try:
            async for chunk in response.content.iter_any():
                chunks.append(chunk)  # noqa: PERF401 - what came before a failure counts
        finally:
            answer.body = b"".join(chunks)


def _body(asked: Question, target: Target) -> dict[str, object]:
    fields: dict[str, object] = {"max_tokens": _MAX_TOKENS, "stream": asked.kind in STREAMS}
    if asked.kind in MESSAGES:
        body = chat(asked.words, **fields)
        body["messages"] = [{"role": "user", "content": asked.words}]
        return body
    if asked.colour is None:
        return chat(asked.words, **fields)
    return chat(image_part(_picture(asked, target)), asked.words, **fields)


def _picture(asked: Question, target: Target) -> str:
    assert asked.colour is not None, "asked of pictures only"
    if asked.kind is Kind.REMOTE:
        return f"{target.origin}/{asked.colour[1:]}.jpg"
    return _data_urls(asked.colour)


def picture(colour: str) -> bytes:
    """A JPEG above the cap of the gateways under test, of one colour."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return drawn.jpeg(900, 700, (red, green, blue))


_KNOWN: dict[str, str] = {}


def _data_urls(colour: str) -> str:
    if colour not in _KNOWN:
        _KNOWN[colour] = drawn.data_url(picture(colour))
    return _KNOWN[colour]
