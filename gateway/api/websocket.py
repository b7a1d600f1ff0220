"""A client's side of a WebSocket on aiohttp, and the relay between two sides.

Decided here: messages cross whole and in order, pings and pongs as they are, a close with its code and reason; the slow
side holds the fast one back (each direction sends one message before it takes the next); silence, a drain and a message
over the limit end both sides with a code that says so. Fragments of a message are joined, extensions are not offered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
from aiohttp import web

from gateway.api.client import HttpClient
from gateway.talking import Socket
from gateway.types.paths import Lane
from gateway.types.websocket import ABNORMAL, GOING_AWAY, NO_CODE, NORMAL, Frame, FrameKind, told_code

_CLOSE_TIMEOUT_S = 5.0


def frame_of(message: aiohttp.WSMessage, close_code: int | None) -> Frame:
    """What aiohttp received; whatever ends a connection is a close."""
    kind, data = message.type, message.data
    if kind is aiohttp.WSMsgType.TEXT:
        return Frame(FrameKind.TEXT, data.encode())
    if kind is aiohttp.WSMsgType.BINARY:
        return Frame(FrameKind.BINARY, data)
    if kind is aiohttp.WSMsgType.PING:
        return Frame(FrameKind.PING, bytes(data))
    if kind is aiohttp.WSMsgType.PONG:
        return Frame(FrameKind.PONG, bytes(data))
    if kind is aiohttp.WSMsgType.CLOSE:
        return Frame(FrameKind.CLOSE, str(message.extra or "").encode(), data or NO_CODE)
    if kind is aiohttp.WSMsgType.ERROR and isinstance(data, aiohttp.WebSocketError):
        return Frame(FrameKind.CLOSE, b"", data.code)
    return Frame(FrameKind.CLOSE, b"", close_code or ABNORMAL)


async def send_frame(socket: Any, frame: Frame) -> None:
    """Send one frame on either of aiohttp's sockets, which share no type."""
    if frame.kind is FrameKind.TEXT:
        await socket.send_str(frame.data.decode())
    elif frame.kind is FrameKind.BINARY:
        await socket.send_bytes(frame.data)
    elif frame.kind is FrameKind.PING:
        await socket.ping(frame.data)
    else:
        await socket.pong(frame.data)


class _Accepted:
    """The client's side once it is open."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    @property
    def subprotocol(self) -> str | None:
        return self._socket.ws_protocol

    async def receive(self, silence_s: float) -> Frame:
        return frame_of(await self._socket.receive(timeout=silence_s), self._socket.close_code)

    async def send(self, frame: Frame) -> None:
        await send_frame(self._socket, frame)

    async def close(self, code: int, reason: bytes = b"") -> None:
        await self._socket.close(code=code, message=reason, drain=False)


class WebSocketClient(HttpClient):
    """Implements the Talker port. ``leaving`` returns once a drain wants conversations to end."""

    leaving: Callable[[], Awaitable[None]]

    @property
    def subprotocols(self) -> Sequence[str]:
        offered = ",".join(value for name, value in self.head.headers if name.lower() == "sec-websocket-protocol")
        return [name.strip() for name in offered.split(",") if name.strip()]

    async def converse(self, other: Socket, lane: Lane) -> None:
        socket = web.WebSocketResponse(
            timeout=_CLOSE_TIMEOUT_S,
            autoclose=False,
            autoping=False,
            compress=False,
            protocols=() if other.subprotocol is None else (other.subprotocol,),
            max_msg_size=lane.max_message_bytes,
        )
        self._response = socket
        try:
            await socket.prepare(self._request)
            await relay(_Accepted(socket), other, lane.idle_timeout_s, self.leaving)
        finally:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await other.close(GOING_AWAY)


async def relay(client: Socket, other: Socket, silence_s: float, leaving: Callable[[], Awaitable[None]]) -> None:
    """Until one side closes, both were silent too long, or it is time to leave; then both are closed."""
    heard = _Heard(asyncio.get_running_loop().time())
    ways = [
        asyncio.create_task(_one_way(client, other, silence_s, heard)),
        asyncio.create_task(_one_way(other, client, silence_s, heard)),
        asyncio.create_task(_left(leaving)),
    ]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        last = next(iter(done)).result()
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    with contextlib.suppress(ConnectionError, TimeoutError):
        await other.close(told_code(last.code), last.data)
    with contextlib.suppress(ConnectionError, TimeoutError):
        await client.close(told_code(last.code), last.data)


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
        except ConnectionError:
            return Frame(FrameKind.CLOSE, b"", ABNORMAL)


async def _left(leaving: Callable[[], Awaitable[None]]) -> Frame:
    await leaving()
    return Frame(FrameKind.CLOSE, b"the gateway is leaving", GOING_AWAY)
