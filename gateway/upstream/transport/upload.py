"""Request bodies that know how far they got: the proof behind NotTaken.

``sent`` means that the kernel has accepted every byte (the connection's water marks are zero, so ``drain`` waits for
that). Before it, no engine can have the whole body, so none can have begun to work on it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from aiohttp.client_proto import ResponseHandler
from aiohttp.http import StreamWriter

from gateway.errors import BodyTooLarge
from gateway.ports import Client
from gateway.types.cutting import cut_off
from gateway.upstream.transport.patience import Patience

# Below this a body goes out in one write, joined with the head.
JOIN_BYTES = 64 * 1024
# Pieces of a large body: what the kernel does not take at once is copied, so no piece is much larger than its buffer.
_PIECE_BYTES = 256 * 1024


class Upload(ABC):
    """A request body that knows how far it got: ``started`` and ``sent`` are the proof behind NotTaken.

    ``size``: its bytes, ``None`` where only its end tells (it then goes out in chunks). Lent to one connection by
    ``begin``, whose patience begins anew whenever the backend took something.
    """

    __slots__ = ("_patience", "_task", "_transport", "sent", "size", "started")

    def __init__(self, size: int | None) -> None:
        self.size = size
        self.started = False
        self.sent = False
        self._patience: Patience | None = None
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def joined(self) -> bytes | None:
        """All of it, if it is short enough to go out in one write with the head."""
        return None

    def begin(self, protocol: ResponseHandler, head: bytes, patience: Patience) -> None:
        """Send the head and the body, in one write if that is possible, else beside whoever waits for the answer.

        Raises ConnectionError, with nothing sent, where the connection is gone.
        """
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the connection was closed")
        self._transport, self._patience, self.started = transport, patience, True
        body = self.joined()
        if body is not None:
            transport.write(head + body)
            patience.begin()
            if not protocol.writing_paused:
                self.sent = not transport.is_closing()
                return
        else:
            transport.write(head)
        self._task = asyncio.get_running_loop().create_task(self._send(protocol, rest=body is None))

    async def _send(self, protocol: ResponseHandler, *, rest: bool) -> None:
        """Send what is left. A failure goes to whoever waits for the answer, who gave us the connection."""
        writer = StreamWriter(protocol, asyncio.get_running_loop())
        try:
            if rest:
                writer.length = self.size
                if self.size is None:
                    writer.enable_chunking()
                await self.write_body(writer)
                await writer.write_eof()
            await writer.drain()
        except Exception as failure:  # noqa: BLE001  # of engine, client or ours: the exchange's to judge
            protocol.set_exception(failure if isinstance(failure, OSError) else ConnectionAbortedError(repr(failure)))
            return
        self.progress()
        self.sent = True

    @abstractmethod
    async def write_body(self, writer: StreamWriter) -> None:
        """Hand every byte to ``writer``."""

    def progress(self) -> None:
        """The backend took something, so its time starts anew."""
        if self._patience is not None:
            self._patience.begin()

    def pause(self) -> None:
        """Waiting for somebody else than the backend."""
        if self._patience is not None:
            self._patience.end()

    def unwatch(self) -> None:
        """The response has begun: its own time limits hold from here on, even if the body is still being sent."""
        self._patience = None

    def cut(self) -> None:
        """Cut the connection, unsent bytes included."""
        cut_off(self._transport)

    def abandon(self) -> None:
        """Cut the connection, and let go of the body's memory."""
        self._patience = None
        self.cut()
        if self._task is not None:
            self._task.cancel()


class Pieces(Upload):
    """A body that lies in memory, as the splice made it. Holds views of it only until it is sent or abandoned."""

    __slots__ = ("_body", "_view")

    def __init__(self, body: Sequence[bytes | memoryview], size: int) -> None:
        super().__init__(size)
        self._body = body
        self._view: memoryview | None = None

    def joined(self) -> bytes | None:
        if self.size is None or self.size > JOIN_BYTES:
            return None
        body, self._body = self._body, ()
        return b"".join(body)

    async def write_body(self, writer: StreamWriter) -> None:
        for chunk in self._body:
            self._view = view = memoryview(chunk)
            for start in range(0, len(chunk), _PIECE_BYTES):
                await writer.write(view[start : start + _PIECE_BYTES])
                await writer.drain()
                self.progress()
            view.release()
        self._body = ()

    def abandon(self) -> None:
        super().abandon()
        self._body = ()
        if self._view is not None:
            self._view.release()


class Relayed(Upload):
    """A body read from the client while it is sent on; the time the client takes is not the backend's."""

    __slots__ = ("_client", "_limit_bytes", "client_failure", "read_bytes")

    def __init__(self, client: Client, limit_bytes: int) -> None:
        super().__init__(client.head.content_length)
        self._client = client
        self._limit_bytes = limit_bytes
        self.read_bytes = 0
        self.client_failure: Exception | None = None

    async def write_body(self, writer: StreamWriter) -> None:
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
