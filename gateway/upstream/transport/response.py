"""A response while it is received: bytes as they come, the proper end or an error, and a prompt cut when left."""

from __future__ import annotations

from typing import Protocol

import aiohttp

from gateway.errors import BackendLost, BackendTimeout
from gateway.types import HeaderList
from gateway.upstream import headers
from gateway.upstream.transport.telling import told
from gateway.upstream.transport.upload import Upload
from gateway.upstream.transport.wires import Wire

# aiohttp holds the engine back when more than this has come and nobody reads; then silence is our own doing.
_HELD_BACK_BYTES = 64 * 1024


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
        "_response",
        "_upload",
        "_watch",
        "_wire",
        "blamed",
        "content_length",
        "headers",
        "load_report",
        "retry_after",
        "status",
        "stripped_headers",
    )

    def __init__(
        self, response: aiohttp.ClientResponse, upload: Upload | None, wire: Wire, stripped_headers: int
    ) -> None:
        self._response = response
        self._upload = upload
        self._wire = wire
        self._watch: Watch | None = None
        self._awaits_first = False
        self.blamed = False
        self.retry_after: str | None = response.headers.get("Retry-After")
        self._ahead: list[bytes] = []
        self.status = response.status
        self.headers: HeaderList = headers.incoming(response.headers.items())
        self.load_report = response.headers.get(headers.LOAD_REPORT)
        self.content_length = response.content_length
        self.stripped_headers = stripped_headers

    async def chunk(self) -> bytes:
        """The next bytes as they came, ``b""`` at the proper end. Raises BackendLost, BackendTimeout."""
        if self._ahead:
            return self._ahead.pop(0)
        return await self._receive()

    async def _receive(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except aiohttp.SocketTimeoutError as error:
            self._told_broken()
            raise BackendTimeout(detail="silent within the response") from error
        except (aiohttp.ClientError, OSError) as error:
            self._told_broken()
            raise BackendLost(detail=f"within the response: {told(error)}") from error
        if self._awaits_first and self._watch is not None:
            self._awaits_first = False
            self._watch.first()
        return chunk

    def _told_broken(self) -> None:
        if self._watch is not None:
            self._watch.broke()
            self._watch = None

    @property
    def is_stream(self) -> bool:
        """Whether it comes event by event."""
        return self._response.content_type == "text/event-stream"

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
            chunk = await self._receive()
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
        connection = self._response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is None:
            return
        protocol.read_timeout = idle_s
        if self._response.content.total_bytes < _HELD_BACK_BYTES:
            protocol.start_timeout()

    def close(self) -> None:
        """Give the connection back if the response was read to its end, else cut it at once."""
        self._wire.end()
        connection = self._response.connection
        if self._upload is not None and not self._upload.sent:
            self._upload.abandon()
        elif connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()
