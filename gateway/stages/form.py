"""The model that a form names, read off its first bytes while the rest still comes: audio uploads.

Decided here: how far is looked (clients of OpenAI's SDK send fields before files), how an alias's name is replaced on
the way, and that a form that names a model once more further on never reaches its end: engines take the last. Not
decided here: which model that is (``policy``), how names are read (``form_fields``). A form that names its model behind
its file is carried like one that names none.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import GatewayError
from gateway.ports import Body, Client
from gateway.record import RequestHead
from gateway.stages.form_fields import FormFields, boundary_of
from gateway.types import HeaderList

PEEKED_BYTES = 16 * 1024


def is_form(head: RequestHead) -> bool:
    """Whether the body is a form whose fields can be looked for."""
    return (head.header("content-type") or "").lower().startswith("multipart/form-data")


class Form:
    """A client whose first bytes were read; it gives them again, and then the others as they come."""

    def __init__(self, client: Client) -> None:
        """Raises InvalidRequest for a form without a boundary."""
        self._client = client
        self._pieces: list[bytes] = []
        self._head = client.head
        self._fields = FormFields(boundary_of(client.head.header("content-type") or ""))

    @classmethod
    async def of(cls, client: Client) -> Form:
        """Read as much as is looked at. Raises what the client's ``chunk`` raises, and InvalidRequest."""
        form = cls(client)
        size = 0
        while size < PEEKED_BYTES and form._fields.model is None and (piece := await client.chunk()):
            form._fields.feed(piece)
            form._pieces.append(piece)
            size += len(piece)
        return form

    @property
    def model(self) -> str | None:
        """The model named, if it was among the bytes that were read."""
        found = self._fields.model
        return None if not found else found.decode("utf-8", "replace")

    def rename(self, model: str) -> None:
        """Let the form name another model."""
        fields, start = self._fields, b"".join(self._pieces)
        if fields.model is None:
            return
        renamed = start[: fields.value_at] + model.encode() + start[fields.value_at + len(fields.model) :]
        self._pieces = [renamed]
        if self._head.content_length is not None:
            length = self._head.content_length + len(renamed) - len(start)
            self._head = replace(self._head, content_length=length)

    async def chunk(self) -> bytes:
        """The next bytes. Raises InvalidRequest where they name a model again."""
        if self._pieces:
            return self._pieces.pop(0)
        piece = await self._client.chunk()
        self._fields.feed(piece)
        return piece

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
