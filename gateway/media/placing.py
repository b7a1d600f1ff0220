"""A source's bytes: what they are called, and where a worker can read them.

Decided here: the look-up identity of a source, and that bytes outside the slab are copied into it while bytes inside
are read where they lie. Not decided here: who works on them (``service``). Views of a body live within a call only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import BodyMemoryExhausted, InvalidRequest
from gateway.media.digest import lookup_digest
from gateway.media.messages import Bytes
from gateway.media.shm import Hold, Slab, SlabBody
from gateway.media.sources import HEAD_BYTES, MAX_URL_BYTES, SourceKind, classify, resolve_head
from gateway.ports import Body, ClipRef, SourceRef
from gateway.types import LongString, TenantId


@dataclass(frozen=True, slots=True)
class Source:
    """One source by name. ``key`` is its look-up identity, scoped by tenant: of its text as it stands, or of its file.

    ``place`` claims its bytes for a worker; whoever calls it closes the hold. Raises BodyMemoryExhausted.
    """

    name: str
    key: tuple[str, bytes]
    place: Callable[[], tuple[Hold, Bytes]]


class Placer:
    """Knows the slab and the deployment's look-up seed."""

    def __init__(self, slab: Slab, seed: int) -> None:
        self._slab = slab
        self._seed = seed

    def text(self, body: Body, ref: SourceRef | ClipRef, tenant: TenantId) -> Source:
        """A source string of the body. One with and one without JSON escapes are two strings, known separately."""
        view = _view(body, ref.source)
        digest = lookup_digest(view, seed=self._seed, scope=tenant)
        return Source(ref.name, ("text", digest), lambda: self.place(body, ref.source))

    def file(self, name: str, file: bytes, tenant: TenantId) -> Source:
        """A fetched file."""
        digest = lookup_digest(file, seed=self._seed, scope=tenant)
        return Source(name, ("file", digest), lambda: self.place_file(file))

    def place(self, body: Body, source: str | LongString) -> tuple[Hold, Bytes]:
        """Claim a source string's bytes, in place if the body is in the slab. Raises BodyMemoryExhausted."""
        has_escapes = isinstance(source, LongString) and source.has_escapes
        if isinstance(source, LongString) and isinstance(body, SlabBody) and body.extent.slab is self._slab:
            where = Bytes(source.span.start, source.span.byte_count, is_text=True, has_escapes=has_escapes)
            return body.extent.hold(), where
        view = _view(body, source)
        hold = self._copy(view)
        return hold, Bytes(hold.offset, len(view), is_text=True, has_escapes=has_escapes)

    def place_file(self, file: bytes) -> tuple[Hold, Bytes]:
        """Claim room for a file and copy it there. Raises BodyMemoryExhausted."""
        hold = self._copy(memoryview(file))
        return hold, Bytes(hold.offset, len(file), is_text=False, has_escapes=False)

    def _copy(self, view: memoryview) -> Hold:
        extent = self._slab.take(len(view))
        if extent is None:
            raise BodyMemoryExhausted
        if len(view):
            extent.view[:] = view
        hold = extent.hold()
        extent.close()
        return hold


def kind_of(body: Body, source: str | LongString) -> SourceKind:
    """What a source is, by its first bytes. Raises InvalidRequest for what is never opened."""
    return classify(head_of(body, source))


def head_of(body: Body, source: str | LongString) -> bytes:
    """A source's first ``HEAD_BYTES`` with escapes resolved. Raises InvalidRequest for one that JSON does not know."""
    if isinstance(source, str):
        return source[:HEAD_BYTES].encode("utf-8", "surrogatepass")
    span = source.span
    head = bytes(body.view(span.start, min(span.stop, span.start + HEAD_BYTES)))
    return resolve_head(head, has_escapes=source.has_escapes)


def address_of(body: Body, source: str | LongString) -> str:
    """A remote source's URL, without the white space around it. Raises InvalidRequest when it is too long to be one."""
    if isinstance(source, LongString):
        if source.span.byte_count > MAX_URL_BYTES:
            raise InvalidRequest(f"The image's URL has more than {MAX_URL_BYTES} bytes.")
        text = bytes(body.view(source.span.start, source.span.stop))
        source = resolve_head(text, has_escapes=source.has_escapes).decode("utf-8", "replace")
    return source.strip(" \t\r\n\f\v")


def _view(body: Body, source: str | LongString) -> memoryview:
    if isinstance(source, LongString):
        return body.view(source.span.start, source.span.stop)
    return memoryview(source.encode("utf-8", "surrogatepass"))
