"""One client connection on aiohttp: what is answered to bytes that are no HTTP request, and to what nobody caught.

Decided here: that both get our envelope instead of aiohttp's text, which quotes the offending bytes, and that the
former leave no traceback (it would hold a piece of a header, perhaps of a key); that a request whose body's framing
breaks hears of it at once; and that only HTTP/1 is spoken. Not decided here: anything about a request that can be read.
"""

from __future__ import annotations

import uuid

from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import _ErrInfo

from gateway.api.problems import error_headers
from gateway.dialects import DIALECTS
from gateway.errors import GatewayBug, GatewayError, HeaderTooLarge, Malformed
from gateway.types import RequestId


class Connection(web.RequestHandler):
    """aiohttp's protocol with error answers of ours."""

    __slots__ = ()

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
