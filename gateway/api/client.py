"""One client's side of an exchange on aiohttp: read the body once, answer once, stream with back-pressure.

Decided here: how a response reaches the wire, when a keep-alive comment may be written, and that a broken response is
never ended as if it were whole. Not decided here: status, headers and bytes (the journey says), envelopes (dialects).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from aiohttp import web
from multidict import CIMultiDict

from gateway.api.body import invite, next_piece, read_body
from gateway.api.problems import error_headers
from gateway.api.relayed import SERVER, Relayed
from gateway.api.uploads import Uploads
from gateway.dialects import Dialect
from gateway.dialects.sse import EventBoundary
from gateway.errors import GatewayError
from gateway.ports import Body
from gateway.record import RequestHead
from gateway.types import HeaderList
from gateway.types.cutting import cut_off

COMMENT = b": keep-alive\n"
STREAM_HEADERS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))


class HttpClient:
    """Implements the journey's Client port for one aiohttp request."""

    def __init__(
        self,
        request: web.BaseRequest,
        head: RequestHead,
        dialect: Dialect,
        uploads: Uploads,
        *,
        body_silence_s: float,
        is_closing: Callable[[], bool],
        dress: Callable[[HeaderList], HeaderList] | None = None,
    ) -> None:
        """``dress`` has the last word on the headers of an answer (CORS, Via)."""
        self._request = request
        self._head = head
        self._dialect = dialect
        self._uploads = uploads
        self._body_silence_s = body_silence_s
        self._is_closing = is_closing
        self._dress = dress
        self._response: web.StreamResponse | None = None
        self._finished = False
        self._invited = False
        self._boundary: EventBoundary | None = None
        self._beat: asyncio.Task[None] | None = None
        self._wrote_s = 0.0

    @property
    def head(self) -> RequestHead:
        return self._head

    @property
    def started(self) -> bool:
        """A head that still waits for its body has not begun anything: an error may take its place."""
        return self._response is not None and not self._is_unsent()

    @property
    def response(self) -> web.StreamResponse | None:
        return self._response

    @property
    def left(self) -> bool:
        transport = self._request.transport
        return transport is None or transport.is_closing()

    def speak_plainly(self) -> None:
        """From here on headers are complete as they are given."""
        self._dress = None

    async def read(self, limit_bytes: int) -> Body:
        return await read_body(self._request, self._uploads, limit_bytes, self._body_silence_s)

    async def chunk(self) -> bytes:
        """The next bytes of the body, for requests that are streamed through; ``b""`` at the end. Raises Malformed."""
        if not self._invited:
            self._invited = True
            await invite(self._request)
        return await next_piece(self._request, self._body_silence_s)

    def keep_alive(self, every_s: float) -> None:
        self._writing = asyncio.Lock()
        self._wrote_s = asyncio.get_running_loop().time()
        self._beat = asyncio.get_running_loop().create_task(self._pulse(every_s))

    async def _pulse(self, every_s: float) -> None:
        with contextlib.suppress(ConnectionError):  # the client left; the exchange finds out by itself
            await self._comment_forever(every_s)

    async def _comment_forever(self, every_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            silent_s = loop.time() - self._wrote_s
            if silent_s < every_s:
                await asyncio.sleep(every_s - silent_s)
                continue
            async with self._writing:
                if self._response is None:
                    await self._begin(200, STREAM_HEADERS, None)
                if self._response is not None and self._boundary is not None and self._boundary.here:
                    await self._response.write(COMMENT)
            self._wrote_s = loop.time()

    async def start(self, status: int, headers: HeaderList, content_length: int | None) -> None:
        if self._beat is None:
            await self._begin(status, headers, content_length)
            return
        async with self._writing:
            if self._response is None:
                await self._begin(status, headers, content_length)

    async def _begin(self, status: int, headers: HeaderList, content_length: int | None) -> None:
        told = headers if self._dress is None else self._dress(headers)
        is_event_stream = _is_event_stream(told)
        # A stream's head tells the client that it was accepted; any other head travels with the first bytes of the
        # body, which saves a system call on every answer.
        response = Relayed(status, told, content_length, waits=not is_event_stream)
        if is_event_stream:
            self._boundary = EventBoundary()
        if self._is_closing() or self._is_half_read():
            # What is left of a body that was answered before its end is not worth its way here.
            response.force_close()
        self._response = response
        await response.prepare(self._request)

    async def write(self, chunk: bytes) -> None:
        response = self._response
        assert response is not None, "start comes before write"
        if self._boundary is not None:
            self._boundary.feed(chunk)
        if self._beat is None:
            await response.write(chunk)
            return
        async with self._writing:
            self._wrote_s = asyncio.get_running_loop().time()
            await response.write(chunk)

    async def finish(self) -> None:
        self.close()
        if self._response is not None:
            self._finished = True
            await self._response.write_eof()

    def _is_half_read(self) -> bool:
        """Whether the request's body has not come to its end, or to one that is none."""
        content = self._request.content
        return not content.is_eof() or content.exception() is not None

    def _is_unsent(self) -> bool:
        return isinstance(self._response, Relayed) and self._response.is_unsent

    async def refuse(self, error: GatewayError) -> None:
        """Answer with an error: as a response of its own, as a stream's last event, or by cutting what is half sent.

        A whole answer stays as it is: cut while its last bytes went out.
        """
        self.close()
        if self._finished:
            return
        request_id = self._head.request_id
        if isinstance(self._response, Relayed) and self._response.is_unsent:
            self._response.withdraw()
            self._response = None
        if self._response is None:
            told = error_headers(error, request_id)
            self._response = response = web.Response(
                status=error.told_status,
                headers=CIMultiDict([("Server", SERVER), *(told if self._dress is None else self._dress(told))]),
                body=self._dialect.error_body(error, request_id),
                content_type="application/json",
            )
            if self._is_closing() or self._is_half_read():
                # What is left of an unread body is not worth reading, or cannot be trusted.
                response.force_close()
            await response.prepare(self._request)
            await response.write_eof()
        elif self._boundary is not None and self._boundary.here:
            if not self._request.content.is_eof():
                self._response.force_close()
            # Else the connection stays what its head said: who trusts that may have sent the next request already.
            await self._response.write(self._dialect.stream_error(error, request_id))
            await self._response.write_eof()
        else:
            self.abort()

    def abort(self) -> None:
        """Cut the connection so that a half response cannot be taken for a whole one."""
        self.close()
        cut_off(self._request.transport)

    def close(self) -> None:
        """Stop the keep-alive comments; synchronous and safe to repeat."""
        if self._beat is not None:
            self._beat.cancel()


def _is_event_stream(headers: HeaderList) -> bool:
    for name, value in headers:
        if len(name) == 12 and name.lower() == "content-type":
            return value.lower().startswith("text/event-stream")
    return False
