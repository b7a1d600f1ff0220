"""A response while it is received: bytes as they come, the proper end or an error, and a prompt cut when left."""

from __future__ import annotations

import aiohttp

from gateway.errors import BackendLost, BackendTimeout
from gateway.types import HeaderList
from gateway.upstream import headers
from gateway.upstream.transport.upload import Upload

# aiohttp holds the engine back when more than this has come and nobody reads; then silence is our own doing.
_HELD_BACK_BYTES = 64 * 1024


class EngineResponse:
    """A response being received (``ports.UpstreamResponse``).

    ``stripped_headers`` counts the steering headers taken from the request.
    """

    __slots__ = (
        "_ahead",
        "_response",
        "_upload",
        "content_length",
        "headers",
        "load_report",
        "status",
        "stripped_headers",
    )

    def __init__(self, response: aiohttp.ClientResponse, upload: Upload | None, stripped_headers: int) -> None:
        self._response = response
        self._upload = upload
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
            return await self._response.content.readany()
        except aiohttp.SocketTimeoutError as error:
            raise BackendTimeout(detail="silent within the response") from error
        except (aiohttp.ClientError, OSError) as error:
            raise BackendLost(detail=f"within the response: {type(error).__name__}: {error}") from error

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
        connection = self._response.connection
        if self._upload is not None and not self._upload.sent:
            self._upload.abandon()
        elif connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()
