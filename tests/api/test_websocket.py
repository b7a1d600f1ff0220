"""The relay between two sides: order, closes, silence, leaving; sides of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.api import websocket
from gateway.api.websocket import relay
from gateway.errors import BackendLost
from gateway.types.websocket import ABNORMAL, Frame, FrameKind


class Side:
    """Says what it is given, remembers what it hears."""

    subprotocol: str | None = None

    def __init__(self, *says: Frame) -> None:
        self.says: asyncio.Queue[Frame] = asyncio.Queue()
        for frame in says:
            self.says.put_nowait(frame)
        self.heard: list[Frame] = []
        self.closed: list[tuple[int, bytes]] = []
        self.gone: Exception | None = None
        self.was_missed = asyncio.Event()
        self.reads_from = asyncio.Event()
        self.reads_from.set()

    async def receive(self, silence_s: float) -> Frame:
        if self.gone is not None and self.says.empty():
            return Frame(FrameKind.CLOSE, b"", ABNORMAL)
        async with asyncio.timeout(silence_s):
            return await self.says.get()

    async def send(self, frame: Frame) -> None:
        if self.gone is not None:
            self.was_missed.set()
            raise self.gone
        await self.reads_from.wait()
        self.heard.append(frame)

    async def close(self, code: int, reason: bytes = b"") -> None:
        self.closed.append((code, reason))


async def never() -> None:
    await asyncio.Event().wait()


async def at_once() -> None:
    return


def text(data: bytes) -> Frame:
    return Frame(FrameKind.TEXT, data)


async def _relayed(
    client: Side, other: Side, leaving: Callable[[], Awaitable[None]] = never, silence_s: float = 5
) -> None:
    async with asyncio.timeout(30):
        await relay(client, other, silence_s, leaving)


async def test_frames_cross_in_order_and_a_close_ends_both() -> None:
    said = [text(b"1"), Frame(FrameKind.PING, b"2"), Frame(FrameKind.BINARY, b"3")]
    client, other = Side(*said, Frame(FrameKind.CLOSE, b"bye", 4000)), Side()
    await _relayed(client, other)
    assert other.heard == said
    assert client.closed == other.closed == [(4000, b"bye")]


async def test_a_close_without_a_code_and_a_lost_side() -> None:
    client, other = Side(Frame(FrameKind.CLOSE)), Side()
    await _relayed(client, other)
    assert other.closed == [(1000, b"")]
    lost, other = Side(), Side(text(b"nobody hears"))
    lost.gone = ConnectionResetError()
    await _relayed(lost, other)
    assert lost.closed == other.closed == [(1011, b"")]


async def test_a_backend_that_is_gone_without_a_word_is_lost() -> None:
    client, other = Side(text(b"nobody hears")), Side()
    other.gone = BackendLost()
    with pytest.raises(BackendLost):
        await _relayed(client, other)
    assert client.closed == other.closed == [(1011, b"")]


async def test_what_a_side_said_before_it_hung_up_is_heard() -> None:
    """The client reads slowly, and only goes on once it could not be heard itself any more."""
    words = [text(b"your budget is spent"), text(b"good bye")]
    client, other = Side(text(b"more")), Side(*words, Frame(FrameKind.CLOSE, b"spent", 4008))
    other.gone, client.reads_from = ConnectionResetError(), other.was_missed
    await _relayed(client, other)
    assert client.heard == words
    assert client.closed == other.closed == [(4008, b"spent")]


async def test_a_side_that_hung_up_is_not_listened_to_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_LAST_WORDS_S", 0)
    client, other = Side(text(b"more")), Side(text(b"never read"))
    other.gone, client.reads_from = ConnectionResetError(), asyncio.Event()
    await _relayed(client, other)
    assert client.closed == other.closed == [(1011, b"")]


async def test_the_client_is_closed_last() -> None:
    """Its end cancels the exchange, which would then be told as one whose client left."""
    order: list[Side] = []

    class Noted(Side):
        async def close(self, code: int, reason: bytes = b"") -> None:
            await asyncio.sleep(0)
            order.append(self)

    for goodbye in (never, at_once):
        client, other = Noted(Frame(FrameKind.CLOSE)), Noted()
        await _relayed(client, other, goodbye)
        assert order == [other, client]
        order.clear()


async def test_silence_of_both_ends_it_and_leaving_too() -> None:
    client, other = Side(), Side()
    await _relayed(client, other, silence_s=0.02)
    assert client.closed == [(1000, b"silent too long")]
    client, other = Side(), Side()
    await _relayed(client, other, at_once)
    assert client.closed == other.closed == [(1001, b"the gateway is leaving")]
