"""A response while it is received: bytes as they come, the proper end or an error, and a prompt cut when left."""

from __future__ import annotations

from typing import Protocol

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from gateway.errors import BackendLost, BackendTimeout
from gateway.types import HeaderList
from gateway.types.cutting import cut_off
from gateway.upstream import headers
from gateway.upstream.transport.patience import Silence
from gateway.upstream.transport.telling import told
from gateway.upstream.transport.upload import Upload
from gateway.upstream.transport.wires import Wire


class Watch(Protocol):
    """Who wants to know what becomes of a response that has begun."""

    def first(self) -> None:
        """Its first bytes came."""
        ...

    def broke(self) -> None:
        """It was lost, or silent for too long. Nothing more is told."""
        ...


class EngineResponse:
    """A response being received (``ports.UpstreamResponse``).

    ``stripped_headers`` counts the steering headers taken from the request. ``blamed``: it tells of a broken engine.
    """

    __slots__ = (
        "_ahead",
        "_awaits_first",
        "_connection",
        "_content",
        "_has_ended",
        "_silence",
        "_upload",
        "_watch",
        "_wire",
        "blamed",
        "content_length",
        "headers",
        "is_stream",
        "load_report",
        "retry_after",
        "status",
        "stripped_headers",
    )

    def __init__(
        self,
        connection: Connection,
        message: RawResponseMessage,
        content: StreamReader,
        upload: Upload | None,
        wire: Wire,
        stripped_headers: int,
    ) -> None:
        self._connection = connection
        self._content = content
        self._upload = upload
        self._wire = wire
        self._silence: Silence | None = None
        self._watch: Watch | None = None
        self._awaits_first = self._has_ended = False
        self.blamed = False
        self._ahead: list[bytes] = []
        received = message.headers
        self.status = message.code
        self.headers: HeaderList = headers.incoming(received.items())
        self.retry_after: str | None = received.get("Retry-After")
        self.load_report: str | None = received.get(headers.LOAD_REPORT)
        length = received.get("Content-Length")
        self.content_length = None if length is None else int(length)
        media_type = received.get("Content-Type", "").partition(";")[0]
        # Whether it comes event by event.
        self.is_stream = media_type.strip().lower() == "text/event-stream"
        self.stripped_headers = stripped_headers

    async def chunk(self) -> bytes:
        """The next bytes as they came, ``b""`` at the proper end. Raises BackendLost, BackendTimeout."""
        if self._ahead:
            return self._ahead.pop(0)
        return b"" if self._has_ended else await self._receive()

    async def _receive(self) -> bytes:
        content = self._content
        try:
            # What has come to its end needs no waiting for.
            is_whole = content.is_eof() and content.exception() is None
            chunk = content.read_nowait() if is_whole else await content.readany()
        except aiohttp.SocketTimeoutError as error:
            self._told_broken()
            raise BackendTimeout(detail="silent within the response") from error
        except (aiohttp.ClientError, OSError) as error:
            self._told_broken()
            raise BackendLost(detail=f"within the response: {told(error)}") from error
        if not chunk or is_whole:
            self._has_ended = True
            self.close()
        if self._awaits_first and self._watch is not None:
            self._awaits_first = False
            self._watch.first()
        return chunk

    def _told_broken(self) -> None:
        if self._watch is not None:
            self._watch.broke()
            self._watch = None

    @property
    def has_begun(self) -> bool:
        """Whether some of its body was received ahead."""
        return bool(self._ahead)

    def watch(self, watch: Watch) -> None:
        """Tell ``watch`` what is still to come: the first bytes, if none came yet, and its breaking off."""
        self._watch = watch
        self._awaits_first = not self._ahead

    async def read_ahead(self, limit_bytes: int) -> bytes | None:
        """The whole body, which ``chunk`` will give again; ``None`` if it is longer than the limit."""
        size = 0
        while size <= limit_bytes:
            chunk = b"" if self._has_ended else await self._receive()
            if not chunk:
                return b"".join(self._ahead)
            self._ahead.append(chunk)
            size += len(chunk)
        return None

    async def peek(self) -> bytes:
        """The next bytes, which ``chunk`` will give again; ``b""`` at the proper end."""
        chunk = await self._receive()
        if chunk:
            self._ahead.append(chunk)
        return chunk

    def limit_silence(self, idle_s: float) -> None:
        """From now on ``idle_s`` without a byte end the response (not while we hold the engine back)."""
        protocol = self._connection.protocol
        if protocol is not None and not self._content.is_eof():
            self._silence = Silence(protocol, self._content, idle_s)

    def close(self) -> None:
        """Give the connection back if the response was received to its end, else cut it at once. Safe to call twice."""
        self._wire.end()
        if self._silence is not None:
            self._silence.end()
        protocol = self._connection.protocol
        if protocol is None:
            return
        if self._upload is not None and not self._upload.sent:
            self._upload.abandon()
        elif not self._content.is_eof():
            cut_off(protocol.transport)
        self._connection.release()
