"""Bounded reading of a request body: small ones on the heap, large ones straight into shared memory.

Decided here: when a body is refused unread, where it is kept, and that a chunk is copied once. Not decided here: the
limit (the settings), and what is in it. aiohttp's own 1 MiB limit plays no part: ``content`` is read directly.
"""

from __future__ import annotations

import asyncio

from aiohttp import HttpVersion11, web

from gateway.errors import BodyMemoryExhausted, BodyTooLarge, Malformed, UnsupportedEncoding
from gateway.media.shm import Extent, HeapBody, Slab, SlabBody
from gateway.ports import Body

# Below this a body is cheaper on the heap than in an extent; images that small are copied into shared memory later.
SMALL_BODY_BYTES = 256 * 1024


def refuse_unread(request: web.BaseRequest, limit_bytes: int) -> None:
    """Raise for what the head alone decides, before ``100 Continue`` invites the body."""
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise UnsupportedEncoding
    if any(value.strip().lower() != "chunked" for value in request.headers.getall("Transfer-Encoding", ())):
        raise Malformed("Of the transfer codings only chunked is understood.", part="Transfer-Encoding")
    declared = request.content_length
    if declared is not None and declared > limit_bytes:
        raise _too_large(limit_bytes)


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than the gateway accepts ({limit_bytes} bytes).", rule="max_body_bytes")


async def invite(request: web.BaseRequest) -> None:
    """Answer ``Expect: 100-continue`` (RFC 9110 §10.1.1): the body is wanted. HTTP/1.0 knows no such answer."""
    expect = request.headers.get("Expect")
    if expect is None or request.version < HttpVersion11:
        return
    if expect.lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def next_piece(request: web.BaseRequest, silence_s: float) -> bytes:
    """What came next, ``b""`` at the end. Raises Malformed for silence and for broken framing."""
    if request.content.is_eof() and request.content.exception() is None:
        return request.content.read_nowait()  # all of it came: nothing to wait for
    try:
        async with asyncio.timeout(silence_s):
            return await request.content.readany()
    except TimeoutError:
        raise Malformed(f"No byte of the body came for {silence_s:g} seconds.") from None
    except web.RequestPayloadError as error:
        raise Malformed("The body's framing is broken.", detail=str(error)) from error


async def read_body(request: web.BaseRequest, slab: Slab, limit_bytes: int, silence_s: float) -> Body:
    """Read the whole body. The caller owns it and closes it.

    Raises UnsupportedEncoding, BodyTooLarge, BodyMemoryExhausted (too many large bodies in flight), and Malformed for
    broken framing and for transfer codings besides chunked (the parser undoes only that one).
    """
    refuse_unread(request, limit_bytes)
    await invite(request)
    declared = request.content_length
    if declared is not None and declared > SMALL_BODY_BYTES:
        return await _read_into(request, _take(slab, declared), b"", slab, limit_bytes, silence_s)
    pieces: list[bytes] = []
    total = 0
    while piece := await next_piece(request, silence_s):
        pieces.append(piece)
        total += len(piece)
        if total > limit_bytes:
            raise _too_large(limit_bytes)
        if total > SMALL_BODY_BYTES:
            # A chunked body of unknown length turned out to be large.
            extent = _take(slab, min(max(total * 4, 1 << 20), limit_bytes))
            return await _read_into(request, extent, b"".join(pieces), slab, limit_bytes, silence_s)
    return HeapBody(pieces[0] if len(pieces) == 1 else b"".join(pieces))


def _take(slab: Slab, byte_count: int) -> Extent:
    extent = slab.take(byte_count)
    if extent is None:
        raise BodyMemoryExhausted(retry_after_s=1.0)
    return extent


async def _read_into(
    request: web.BaseRequest, extent: Extent, head: bytes, slab: Slab, limit_bytes: int, silence_s: float
) -> Body:
    length = len(head)
    try:
        extent.view[:length] = head
        while piece := await next_piece(request, silence_s):
            end = length + len(piece)
            if end > limit_bytes:
                raise _too_large(limit_bytes)
            if end > extent.byte_count:
                larger = _take(slab, min(max(end, extent.byte_count * 2), limit_bytes))
                larger.view[:length] = extent.view[:length]
                extent.close()
                extent = larger
            extent.view[length:end] = piece
            length = end
    except BaseException:
        extent.close()
        raise
    return SlabBody(extent, length)
