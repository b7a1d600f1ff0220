"""A response whose head is the backend's: nothing added that a relay has no business to add, no byte of it changed.

Decided here: framing and ``Connection`` as the client's version of HTTP wants them, ``Date`` and ``Server`` where the
backend sent none, and that header bytes that are no UTF-8 (RFC 9110 §5.5: opaque data) leave as they came: aiohttp
reads them as lone surrogates. Not decided here: which headers there are (``upstream.headers``, ``outgoing``).

The head is written once, from the list that it comes as. aiohttp would make a multi-dictionary of it, look a dozen
names up in that, and write it from there.
"""

from __future__ import annotations

from aiohttp import HttpVersion10, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import must_be_empty_body, rfc822_formatted_time, should_remove_content_length
from aiohttp.http_writer import StreamWriter

from gateway.types import HeaderList
from gateway.types.lines import head_bytes

# Instead of aiohttp's default, which names the versions of Python and of itself; a backend's own header passes.
SERVER = "vlm-gateway"


class Relayed(web.StreamResponse):
    """A streamed response. ``waits``: its head is sent with the first bytes of its body, not before.

    ``length``: the body's bytes, ``None`` where only its end tells. Raises ValueError when it is prepared, for control
    characters in a header.
    """

    def __init__(self, status: int, headers: HeaderList, length: int | None, *, waits: bool) -> None:
        super().__init__(status=status)
        self._given = headers
        self._length = length
        self._waits = waits

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self._eof_sent or self._payload_writer is not None:
            return self._payload_writer
        writer = request._payload_writer  # noqa: SLF001  # aiohttp's own responses take it from there
        assert isinstance(writer, StreamWriter)
        self._req = request
        head = head_bytes(self._lines(request, writer))
        self._payload_writer = writer
        writer._headers_buf = head  # noqa: SLF001  # where aiohttp keeps a head that is not sent yet
        if not self._waits:
            writer.send_headers()
        return writer

    @property
    def is_unsent(self) -> bool:
        """Whether nobody has seen anything of it yet: its head still waits for the body."""
        writer = self._payload_writer
        return self._waits and isinstance(writer, StreamWriter) and bool(writer._headers_buf)  # noqa: SLF001  # as above

    def withdraw(self) -> None:
        """Let another response be sent in place of one that is unsent."""
        assert self._req is not None, "it was prepared"
        protocol = self._req.protocol
        self._req._payload_writer = StreamWriter(protocol, protocol._loop)  # noqa: SLF001  # where responses take it

    def _lines(self, request: web.BaseRequest, writer: StreamWriter) -> list[str]:
        """The head's lines; how the body is framed is told to ``writer``, too."""
        version = request.version
        lines = [f"HTTP/{version.major}.{version.minor} {self._status} {self._reason}"]
        has_date = has_server = False
        for name, value in self._given:
            lines.append(f"{name}: {value}")
            if len(name) == 4:
                has_date = has_date or name.lower() == "date"
            elif len(name) == 6:
                has_server = has_server or name.lower() == "server"
        keep_alive = request.keep_alive if self._keep_alive is None else self._keep_alive
        is_bodiless = must_be_empty_body(request.method, self._status)
        if self._length is not None:
            writer.length = self._length
            if not (is_bodiless and should_remove_content_length(request.method, self._status)):
                lines.append(f"Content-Length: {self._length}")
        elif not is_bodiless and version >= HttpVersion11:
            writer.enable_chunking()
            lines.append("Transfer-Encoding: chunked")
        elif not is_bodiless:
            keep_alive = False  # its end is the connection's
        if not has_date:
            lines.append(f"Date: {rfc822_formatted_time()}")
        if not has_server:
            lines.append(f"Server: {SERVER}")
        if keep_alive and version == HttpVersion10:
            lines.append("Connection: keep-alive")
        elif not keep_alive and version == HttpVersion11:
            lines.append("Connection: close")
        self._keep_alive = keep_alive
        return lines


def is_text(values: list[str]) -> bool:
    """Whether header values that aiohttp has read were UTF-8."""
    joined = "".join(values)
    if joined.isascii():
        return True
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return True
