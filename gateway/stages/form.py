"""The model that a form names, read off its first bytes while the rest still comes: audio uploads.

Decided here: how far is looked (clients of OpenAI's SDK send fields before files), and how an alias's name is replaced
on the way. Not decided here: which model that is (``policy``). A form that names its model behind its file is carried
like one that names none.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gateway.errors import GatewayError
from gateway.ports import Body, Client
from gateway.record import RequestHead
from gateway.types import HeaderList

PEEKED_BYTES = 16 * 1024
# A field of multipart/form-data (RFC 7578): its headers, a blank line, its value up to the next line's end.
_MODEL = re.compile(rb'name="?model"?[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,256})\r\n')


def is_form(head: RequestHead) -> bool:
    """Whether the body is a form whose fields can be looked for."""
    return (head.header("content-type") or "").lower().startswith("multipart/form-data")


class Form:
    """A client whose first bytes were read; it gives them again, and then the others as they come."""

    def __init__(self, client: Client, pieces: list[bytes]) -> None:
        self._client = client
        self._pieces = pieces
        self._head = client.head

    @classmethod
    async def of(cls, client: Client) -> Form:
        """Read as much as is looked at. Raises what the client's ``chunk`` raises."""
        pieces: list[bytes] = []
        size = 0
        while size < PEEKED_BYTES and not _MODEL.search(b"".join(pieces)) and (piece := await client.chunk()):
            pieces.append(piece)
            size += len(piece)
        return cls(client, pieces)

    @property
    def model(self) -> str | None:
        """The model named, if it was among the bytes that were read."""
        found = _MODEL.search(b"".join(self._pieces))
        return None if found is None else found[1].decode("utf-8", "replace")

    def rename(self, model: str) -> None:
        """Let the form name another model."""
        start = b"".join(self._pieces)
        found = _MODEL.search(start)
        if found is None:
            return
        renamed = start[: found.start(1)] + model.encode() + start[found.end(1) :]
        self._pieces = [renamed]
        if self._head.content_length is not None:
            length = self._head.content_length + len(renamed) - len(start)
            self._head = replace(self._head, content_length=length)

    async def chunk(self) -> bytes:
        """The next bytes."""
        return self._pieces.pop(0) if self._pieces else await self._client.chunk()

    # --- all else is the client's own -----------------------------------------------------------------------------

    @property
    def head(self) -> RequestHead:
        return self._head

    @property
    def started(self) -> bool:
        return self._client.started

    @property
    def left(self) -> bool:
        return self._client.left

    async def read(self, limit_bytes: int) -> Body:
        return await self._client.read(limit_bytes)

    def keep_alive(self, every_s: float) -> None:
        self._client.keep_alive(every_s)

    async def start(self, status: int, headers: HeaderList, content_length: int | None) -> None:
        await self._client.start(status, headers, content_length)

    async def write(self, chunk: bytes) -> None:
        await self._client.write(chunk)

    async def finish(self) -> None:
        await self._client.finish()

    async def refuse(self, error: GatewayError) -> None:
        await self._client.refuse(error)
