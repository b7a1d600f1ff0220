"""A WebSocket to a backend: opened once, its verdict as that of any request, its frames as they come."""

from __future__ import annotations

import contextlib

import aiohttp

from gateway.errors import BackendLost
from gateway.types.websocket import Frame, received
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
        return received(message.type, message.data, message.extra, self._socket.close_code)

    async def send(self, frame: Frame) -> None:
        """Send on, waiting while the backend is slow. Raises BackendLost."""
        try:
            await self._socket.send_frame(frame.data, aiohttp.WSMsgType(frame.kind))
        except (ConnectionError, aiohttp.ClientError) as error:
            raise BackendLost(detail=f"within the conversation: {told(error)}") from error

    async def close(self, code: int, reason: bytes = b"") -> None:
        """End it; safe to repeat."""
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await self._socket.close(code=code, message=reason)
