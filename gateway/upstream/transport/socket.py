"""A WebSocket to a backend: opened once, its verdict as that of any request, its frames as they come."""

from __future__ import annotations

import contextlib

import aiohttp

from gateway.errors import BackendLost
from gateway.types.websocket import ABNORMAL, NO_CODE, Frame, FrameKind
from gateway.upstream.transport.telling import told

CLOSE_TIMEOUT_S = 5.0


class EngineSocket:
    """An open conversation with a backend (``talking.Socket``)."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    @property
    def subprotocol(self) -> str | None:
        return self._socket.protocol

    async def receive(self, silence_s: float) -> Frame:
        """The next frame; a close at the end, whatever ended it. Raises TimeoutError."""
        message = await self._socket.receive(timeout=silence_s)
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
        return Frame(FrameKind.CLOSE, b"", self._socket.close_code or ABNORMAL)

    async def send(self, frame: Frame) -> None:
        """Send on, waiting while the backend is slow. Raises BackendLost."""
        try:
            if frame.kind is FrameKind.TEXT:
                await self._socket.send_str(frame.data.decode())
            elif frame.kind is FrameKind.BINARY:
                await self._socket.send_bytes(frame.data)
            elif frame.kind is FrameKind.PING:
                await self._socket.ping(frame.data)
            else:
                await self._socket.pong(frame.data)
        except (ConnectionError, aiohttp.ClientError) as error:
            raise BackendLost(detail=f"within the conversation: {told(error)}") from error

    async def close(self, code: int, reason: bytes = b"") -> None:
        """End it; safe to repeat."""
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await self._socket.close(code=code, message=reason)
