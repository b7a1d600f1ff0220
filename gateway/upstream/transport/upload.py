"""Request bodies that know how far they got: the proof behind NotTaken.

``sent`` means that the kernel has accepted every byte (the connection's water marks are zero, so ``drain`` waits for
that). Before it, no engine can have the whole body, so none can have begun to work on it.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from gateway.errors import BodyTooLarge
from gateway.ports import Client

# Below this a body goes out in one write, joined with the head.
_JOIN_BYTES = 64 * 1024
# Pieces of a large body: what the kernel does not take at once is copied, so no piece is much larger than its buffer.
_PIECE_BYTES = 256 * 1024


class Upload(aiohttp.Payload):
    """A request body that knows how far it got: ``started`` and ``sent`` are the proof behind NotTaken.

    ``stall`` is the running time limit of the exchange, moved on whenever the backend took something.
    """

    def __init__(self, size: int | None, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(None)
        self._size = size
        self._stall: asyncio.Timeout | None = stall
        self._stall_s = stall_s
        self.started = False
        self.sent = False
        self.transport: asyncio.WriteTransport | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - aiohttp's signature
        """Only aiohttp's debugging aids want a payload as text."""
        raise TypeError("a request body that is being sent cannot be read back")

    async def write(self, writer: AbstractStreamWriter) -> None:
        self.started = True
        self.transport = writer.transport
        await self.write_body(writer)
        await writer.drain()
        self.progress()
        self.sent = True

    @abstractmethod
    async def write_body(self, writer: AbstractStreamWriter) -> None:
        """Hand every byte to ``writer``."""

    def progress(self) -> None:
        """The backend took something, so its time starts anew."""
        if self._stall is not None and not self._stall.expired():
            self._stall.reschedule(asyncio.get_running_loop().time() + self._stall_s)

    def pause(self) -> None:
        """Waiting for somebody else than the backend."""
        if self._stall is not None and not self._stall.expired():
            self._stall.reschedule(None)

    def unwatch(self) -> None:
        """The response has begun: its own time limits hold from here on, even if the body is still being sent."""
        self._stall = None

    def abandon(self) -> None:
        """Cut the connection, unsent bytes included, and let go of the body's memory."""
        self._stall = None
        if self.transport is not None:
            self.transport.abort()


class Pieces(Upload):
    """A body that lies in memory, as the splice made it. Holds views of it only until it is sent or abandoned."""

    def __init__(self, body: Sequence[bytes | memoryview], size: int, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(size, stall, stall_s)
        self._body = body
        self._view = memoryview(b"")

    async def write_body(self, writer: AbstractStreamWriter) -> None:
        if self.size is not None and self.size <= _JOIN_BYTES:
            await writer.write(self._body[0] if len(self._body) == 1 else b"".join(self._body))
        else:
            writer.send_headers()
            for chunk in self._body:
                self._view = memoryview(chunk)
                for start in range(0, len(chunk), _PIECE_BYTES):
                    await writer.write(self._view[start : start + _PIECE_BYTES])
                    await writer.drain()
                    self.progress()
                self._view.release()
        self._body = ()

    def abandon(self) -> None:
        super().abandon()
        self._body = ()
        self._view.release()


class Relayed(Upload):
    """A body read from the client while it is sent on; the time the client takes is not the backend's."""

    def __init__(self, client: Client, limit_bytes: int, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(client.head.content_length, stall, stall_s)
        self._client = client
        self._limit_bytes = limit_bytes
        self.read_bytes = 0
        self.client_failure: Exception | None = None

    async def write_body(self, writer: AbstractStreamWriter) -> None:
        while chunk := await self._next():
            await writer.write(chunk)
            await writer.drain()

    async def _next(self) -> bytes:
        self.pause()
        try:
            chunk = await self._client.chunk()
            self.read_bytes += len(chunk)
            if self.read_bytes > self._limit_bytes:
                raise BodyTooLarge(rule="max_body_bytes")
        except Exception as failure:
            self.client_failure = failure
            raise
        self.progress()
        return chunk
