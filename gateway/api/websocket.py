"""A client's side of a WebSocket on aiohttp, and the relay between two sides.

Decided here: messages cross whole and in order, pings and pongs as they are, a close with its code and reason; the slow
side holds the fast one back (each direction sends one message before it takes the next); what a side said before it
hung up is heard; silence, a drain and a message over the limit end both sides with a code that says so.
Fragments of a message are joined, extensions are not offered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import aiohttp
from aiohttp import web

from gateway.api.client import HttpClient
from gateway.api.relayed import SERVER
from gateway.api.upgrade import Upgraded, check_handshake
from gateway.errors import BackendLost
from gateway.talking import Socket
from gateway.types.paths import Lane
from gateway.types.websocket import ABNORMAL, GOING_AWAY, INTERNAL, NORMAL, Frame, FrameKind, received, told_code

_CLOSE_TIMEOUT_S = 5.0
_WORDLESS = frozenset((ABNORMAL, INTERNAL))
# How long a side that takes nothing more is still listened to.
_LAST_WORDS_S = 5.0


class _Accepted:
    """The client's side once it is open."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    @property
    def subprotocol(self) -> str | None:
        return self._socket.ws_protocol

    async def receive(self, silence_s: float) -> Frame:
        message = await self._socket.receive(timeout=silence_s)
        return received(message.type, message.data, message.extra, self._socket.close_code)

    async def send(self, frame: Frame) -> None:
        await self._socket.send_frame(frame.data, aiohttp.WSMsgType(frame.kind))

    async def close(self, code: int, reason: bytes = b"") -> None:
        await self._socket.close(code=code, message=reason, drain=False)


class WebSocketClient(HttpClient):
    """Implements the Talker port. ``leaving`` returns once a drain wants conversations to end."""

    leaving: Callable[[], Awaitable[None]]

    def check(self) -> None:
        """Raises InvalidRequest for what is no handshake."""
        check_handshake(self._request)

    @property
    def subprotocols(self) -> Sequence[str]:
        offered = ",".join(value for name, value in self.head.headers if name.lower() == "sec-websocket-protocol")
        return [name.strip() for name in offered.split(",") if name.strip()]

    async def converse(self, other: Socket, lane: Lane) -> None:
        limit_bytes = lane.max_message_bytes
        socket = Upgraded(other.subprotocol, close_timeout_s=_CLOSE_TIMEOUT_S, limit_bytes=limit_bytes)
        socket.headers["Server"] = SERVER
        socket.headers["x-request-id"] = self.head.request_id
        self._response = socket
        try:
            await socket.prepare(self._request)
            await relay(_Accepted(socket), other, lane.idle_timeout_s, self.leaving)
        finally:
            await _close(other, GOING_AWAY)


async def relay(client: Socket, other: Socket, silence_s: float, leaving: Callable[[], Awaitable[None]]) -> None:
    """Until one side closes, both were silent too long, or it is time to leave; then both are closed.

    Raises BackendLost where the other side was gone without a word.
    """
    heard = _Heard(asyncio.get_running_loop().time())
    ways = [
        asyncio.create_task(_one_way(client, other, silence_s, heard)),
        asyncio.create_task(_one_way(other, client, silence_s, heard)),
        asyncio.create_task(_left(leaving)),
    ]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        ended = [way.result() for way in ways if way in done]
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    last = min(ended, key=lambda end: end.code in _WORDLESS)  # a word before none, where two ended at once
    # The client last: aiohttp cancels who still does something for one whose connection is closed.
    await _close(other, told_code(last.code), last.data)
    await _close(client, told_code(last.code), last.data)
    if last.code == ABNORMAL and ways[1] in done:
        raise BackendLost(detail="within the conversation")


async def _close(side: Socket, code: int, reason: bytes = b"") -> None:
    with contextlib.suppress(ConnectionError, TimeoutError):
        await side.close(code, reason)


class _Heard:
    """When anything was last heard of either side: one that listens only is not silent."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s


async def _one_way(source: Socket, target: Socket, silence_s: float, heard: _Heard) -> Frame:
    loop = asyncio.get_running_loop()
    while True:
        try:
            frame = await source.receive(max(heard.at_s + silence_s - loop.time(), 0.001))
        except TimeoutError:
            if loop.time() - heard.at_s >= silence_s:
                return Frame(FrameKind.CLOSE, b"silent too long", NORMAL)
            continue
        heard.at_s = loop.time()
        if frame.kind is FrameKind.CLOSE:
            return frame
        try:
            await target.send(frame)
        except (ConnectionError, BackendLost):
            # Who hung up may have said why, and that may still wait for a slow reader: the other way tells its end.
            await asyncio.sleep(_LAST_WORDS_S)
            return Frame(FrameKind.CLOSE, b"", INTERNAL)


async def _left(leaving: Callable[[], Awaitable[None]]) -> Frame:
    await leaving()
    return Frame(FrameKind.CLOSE, b"the gateway is leaving", GOING_AWAY)
