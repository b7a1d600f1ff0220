"""A response whose head is the backend's: nothing added that a relay has no business to add, no byte of it changed.

Decided here: that aiohttp's ``Content-Type`` for what has none is taken out again, and that header bytes that are no
UTF-8 (RFC 9110 §5.5: opaque data) leave as they came; aiohttp reads them as lone surrogates and would write nothing in
their place. Not decided here: which headers there are (``upstream.headers``, ``outgoing``).
"""

from __future__ import annotations

from aiohttp import web
from aiohttp.http_writer import StreamWriter

_SURROGATE_ESCAPED = "surrogateescape"


class Relayed(web.StreamResponse):
    """A streamed response whose head may wait for its first bytes; aiohttp's own ``Response`` sets the same switch."""

    _send_headers_immediately = True

    async def _prepare_headers(self) -> None:
        is_typed = "Content-Type" in self._headers
        await super()._prepare_headers()
        if not is_typed:
            self._headers.popall("Content-Type", None)

    async def _write_headers(self) -> None:
        writer = self._payload_writer
        if all(map(str.isascii, self._headers.values())) or not isinstance(writer, StreamWriter):
            await super()._write_headers()
            return
        waits, self._send_headers_immediately = not self._send_headers_immediately, False
        await super()._write_headers()  # checks them, and leaves the head in the writer's buffer
        writer._headers_buf = self._raw_head()  # noqa: SLF001  # where aiohttp keeps a head that is not sent yet
        if not waits:
            writer.send_headers()

    def _raw_head(self) -> bytes:
        assert self._req is not None
        version = self._req.version
        lines = [f"HTTP/{version.major}.{version.minor} {self.status} {self.reason}"]
        lines += [f"{name}: {value}" for name, value in self._headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", _SURROGATE_ESCAPED)


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
