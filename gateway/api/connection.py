"""One client connection on aiohttp: what is answered to bytes that are no HTTP request, and to what nobody caught.

Decided here: that both get our envelope instead of aiohttp's text, which quotes the offending bytes, and that the
former leave no traceback (it would hold a piece of a header, perhaps of a key); that a request whose body's framing
breaks hears of it at once; that only HTTP/1 is spoken; and that all requests of a connection are answered in one task.
Not decided here: how it reads on (``types.reading``), anything about a request that can be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid

from aiohttp import web
from aiohttp.http import RawRequestMessage, StreamWriter
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import ERROR, _ErrInfo

from gateway.api.problems import error_headers
from gateway.dialects import DIALECTS
from gateway.errors import GatewayBug, GatewayError, HeaderTooLarge, Malformed
from gateway.types import RequestId
from gateway.types.reading import ReadsWhereHeld


class Connection(ReadsWhereHeld, web.RequestHandler):
    """aiohttp's protocol with error answers of ours."""

    async def start(self) -> None:
        """Answer this connection's requests one after the other, all in this task.

        aiohttp makes a task of each, so that none leaves context variables to the next. Nobody sets any here, and a
        task costs two more turns of the loop per request: 4 % of a text request's CPU.
        """
        while not self._force_close:
            if not self._messages:
                await self._more()
            message, payload = self._messages.popleft()
            if self._parser is not None:
                self._parser.message_consumed()
            if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
                self._resume_reading_if_drained()
            try:
                goes_on = await self._answered(message, payload)
            except ConnectionError:
                break
            except BaseException:
                self.force_close()
                raise
            if not goes_on or self._close or self._force_close:
                break
            self._idle_from_now()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _more(self) -> None:
        """Until ``data_received`` has a message for us."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _answered(self, message: RawRequestMessage | _ErrInfo, payload: StreamReader) -> bool:
        """Answer one request; tells whether the connection may carry another. Raises ConnectionError."""
        manager, make, handler, task = self._manager, self._request_factory, self._request_handler, self._task_handler
        assert manager is not None
        assert make is not None
        assert handler is not None
        assert task is not None
        manager.requests_count += 1
        if isinstance(message, _ErrInfo):
            handler, message = self._make_error_handler(message), ERROR
        request = make(message, payload, self, StreamWriter(self, self._loop), task)
        try:
            response, is_lost = await self._handle_request(request, None, handler)
        finally:
            request._task = None  # type: ignore[assignment]  # noqa: SLF001  # as aiohttp ends the cycle of the two
        if is_lost:
            return False
        self._keepalive = bool(response.keep_alive)
        if not payload.is_eof():
            await self._linger(payload)
        return self._keepalive

    async def _linger(self, payload: StreamReader) -> None:
        """Read for a while what is left of a body: who still sends does not hear an answer that ends its connection."""
        await asyncio.sleep(0)  # who read it until now was cancelled, and lets go of it in the loop's next turn
        with contextlib.suppress(TimeoutError, web.RequestPayloadError):
            async with asyncio.timeout(self._lingering_time):
                while not payload.is_eof() and not self._force_close:
                    await payload.readany()
        if not payload.is_eof():
            self.close()

    def _idle_from_now(self) -> None:
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def data_received(self, data: bytes) -> None:
        """aiohttp queues what it cannot parse as a further request; in the middle of a body it belongs to that body,
        whose reader would else wait for its time limit."""
        super().data_received(data)
        if not self._messages:
            return
        if not isinstance(self._messages[-1][0], RawRequestMessage):
            self._spoil_open_body()
        for at, (message, _) in enumerate(self._messages):
            if isinstance(message, RawRequestMessage) and message.version.major != 1:
                self._messages[at] = (_other_version(), EMPTY_PAYLOAD)

    def _spoil_open_body(self) -> None:
        if len(self._messages) > 1:
            content = self._messages[-2][1]
        elif self._current_request is not None:
            content = self._current_request.content
        else:
            return
        if content.is_eof():
            return
        self._messages.pop()
        content.set_exception(web.RequestPayloadError("broken framing"))
        content.feed_eof()
        self.close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  # aiohttp's words, which quote the client's bytes
    ) -> web.StreamResponse:
        if status >= 500:
            self.log_exception("Not handled", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("half an answer is sent; it can only be cut")
        error = _error_of(status, exc)
        request_id = RequestId(uuid.uuid4().hex)
        response = web.Response(
            status=error.status,
            headers=error_headers(error, request_id),
            body=DIALECTS[0].error_body(error, request_id),
            content_type="application/json",
        )
        response.force_close()
        return response


def _other_version() -> _ErrInfo:
    """aiohttp's parser takes the line of HTTP/2 and HTTP/0.9 too, and would answer as if it spoke them."""
    return _ErrInfo(status=400, exc=BadHttpMessage("another version"), message="another version")


def _error_of(status: int, exc: BaseException | None) -> GatewayError:
    if status >= 500:
        return GatewayBug()
    if isinstance(exc, LineTooLong):
        return HeaderTooLarge()
    return Malformed("This is not an HTTP request we can read.")


class Connections(web.Server):
    """aiohttp's low-level server, making connections of the class above."""

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)
