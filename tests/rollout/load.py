"""Requests by many clients at once, and what became of each: nothing is tried twice, nothing is forgiven.

An answer counts when it is 200 and whole: JSON with usage, or a stream that ends with its last event and holds as many
tokens as it says.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.rollout.deck import Ask, Kind

_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request and its answer; times by the monotonic clock. ``failure`` is empty where all went well."""

    balancer: str
    ask: Ask
    began_s: float
    ended_s: float
    first_byte_s: float
    failure: str
    backend: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens


@dataclass(slots=True)
class _Answer:
    status: int = 0
    backend: str = ""
    first_byte_s: float = 0.0
    body: bytes = b""


class Load:
    """All outcomes so far, and who is still waiting."""

    def __init__(self, pause_s: float = 0.0) -> None:
        """``pause_s``: how long a client thinks between an answer and its next request, on average."""
        self._pause_s = pause_s
        self._dice = random.Random(1)
        self.outcomes: list[Outcome] = []
        self.sent = 0

    async def run(self, name: str, url: str, asks: Iterator[Ask], clients: int, goes_on: Callable[[], bool]) -> None:
        """``clients`` at once through one balancer, each one request after the other, as long as it shall go on."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self._client(session, name, url, asks, goes_on))

    async def _client(
        self, session: aiohttp.ClientSession, name: str, url: str, asks: Iterator[Ask], goes_on: Callable[[], bool]
    ) -> None:
        for ask in asks:
            if not goes_on():
                return
            self.sent += 1
            self.outcomes.append(await exchange(session, name, url, ask))
            await asyncio.sleep(self._dice.uniform(0, 2 * self._pause_s))


async def exchange(session: aiohttp.ClientSession, name: str, url: str, ask: Ask) -> Outcome:
    """One request; never raises for what the other side does."""
    began_s = time.monotonic()
    answer = _Answer()
    try:
        async with asyncio.timeout(_LIMIT_S):
            await _ask(session, url, ask, answer)
        failure, usage = _judged(ask, answer)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        failure, usage = f"{type(error).__name__}: {error} after {len(answer.body)} bytes", {}
    details = usage.get("prompt_tokens_details") or {}
    return Outcome(
        name, ask, began_s, time.monotonic(), answer.first_byte_s, failure, answer.backend,
        int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0)),
        int(details.get("cached_tokens") or 0),
    )  # fmt: skip


async def _ask(session: aiohttp.ClientSession, url: str, ask: Ask, answer: _Answer) -> None:
    headers = {"Content-Type": ask.content_type, "x-request-id": ask.request_id}
    data = ask.body if ask.pieces == 1 else _in_pieces(ask)
    async with session.post(f"{url}{ask.path}", data=data, headers=headers) as response:
        answer.status, answer.backend = response.status, response.headers.get("x-vlmgw-backend", "")
        if response.headers.get("x-request-id") != ask.request_id and response.status == 200:
            answer.status = -1
        async for piece in response.content.iter_any():
            answer.first_byte_s = answer.first_byte_s or time.monotonic()
            answer.body += piece


async def _in_pieces(ask: Ask) -> AsyncIterator[bytes]:
    size = -(-len(ask.body) // ask.pieces)
    for start in range(0, len(ask.body), size):
        yield ask.body[start : start + size]
        await asyncio.sleep(ask.pause_s)


def _judged(ask: Ask, answer: _Answer) -> tuple[str, dict[str, Any]]:
    """What is wrong with an answer (nothing: empty), and its usage."""
    if answer.status != 200:
        return f"{answer.status} {answer.body[:300]!r}", {}
    if ask.kind is Kind.SOUND:
        heard = json.loads(answer.body)["text"]
        return ("" if heard == "200000 bytes" else f"heard {heard}"), {}
    if ask.kind is not Kind.STREAM:
        return "", json.loads(answer.body)["usage"]
    events = [line.removeprefix(b"data: ") for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    if not events or events[-1] != b"[DONE]":
        return f"a stream that ends with {answer.body[-200:]!r}", {}
    parsed = [json.loads(event) for event in events[:-1]]
    usage = next((each["usage"] for each in reversed(parsed) if each.get("usage")), None)
    if usage is None:
        return "a stream without usage", {}
    told = sum(bool(choice["delta"].get("content")) for each in parsed for choice in each["choices"])
    if told != usage["completion_tokens"]:
        return f"{told} events for {usage['completion_tokens']} tokens", usage
    return "", usage
