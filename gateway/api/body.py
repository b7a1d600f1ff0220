"""Bounded reading of a request body: small ones on the heap, large ones straight into shared memory.

Decided here: when a body is refused unread, where it is kept, and that a chunk is copied once. Not decided here: the
limit (the settings), and what is in it. aiohttp's own 1 MiB limit plays no part: ``content`` is read directly.
"""

from __future__ import annotations

import asyncio

from aiohttp import HttpVersion11, web

from gateway.api.uploads import Upload, Uploads
from gateway.errors import BodyTooLarge, Malformed, UnsupportedEncoding
from gateway.media.shm import Extent, HeapBody, SlabBody
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
        raise _silent(silence_s) from None
    except web.RequestPayloadError as error:
        raise _broken(error) from error


def _silent(silence_s: float) -> Malformed:
    return Malformed(f"No byte of the body came for {silence_s:g} seconds.")


def _broken(error: web.RequestPayloadError) -> Malformed:
    cause = error if error.__cause__ is None else error.__cause__
    # Its text would repeat the bytes that could not be read.
    return Malformed("The body's framing is broken.", detail=type(cause).__name__)


async def read_body(request: web.BaseRequest, uploads: Uploads, limit_bytes: int, silence_s: float) -> Body:
    """Read the whole body. The caller owns it and closes it.

    Raises UnsupportedEncoding, BodyTooLarge, BodyMemoryExhausted (too many large bodies in flight), and Malformed for
    broken framing and for transfer codings besides chunked (the parser undoes only that one).
    """
    refuse_unread(request, limit_bytes)
    await invite(request)
    declared = request.content_length
    if declared is not None and declared > SMALL_BODY_BYTES:
        return await _read_large(request, uploads, b"", declared, limit_bytes, silence_s)
    if request.content.is_eof() and request.content.exception() is None:
        whole = request.content.read_nowait()  # all of it came with the head
        if len(whole) > limit_bytes:
            raise _too_large(limit_bytes)
        if len(whole) > SMALL_BODY_BYTES:
            return await _read_large(request, uploads, whole, len(whole), limit_bytes, silence_s)
        return HeapBody(whole)
    pieces: list[bytes] = []
    total = 0
    while piece := await next_piece(request, silence_s):
        pieces.append(piece)
        total += len(piece)
        if total > limit_bytes:
            raise _too_large(limit_bytes)
        if total > SMALL_BODY_BYTES:
            # A chunked body of unknown length turned out to be large.
            room_bytes = min(max(total * 4, 1 << 20), limit_bytes)
            return await _read_large(request, uploads, b"".join(pieces), room_bytes, limit_bytes, silence_s)
    return HeapBody(pieces[0] if len(pieces) == 1 else b"".join(pieces))


async def _read_large(
    request: web.BaseRequest, uploads: Uploads, head: bytes, room_bytes: int, limit_bytes: int, silence_s: float
) -> Body:
    upload = uploads.begin()
    extent: Extent | None = None
    length = len(head)
    try:
        extent = await uploads.room(upload, room_bytes)
        extent.view[:length] = head
        while piece := await _next_of(upload, request, silence_s):
            end = length + len(piece)
            if end > limit_bytes:
                raise _too_large(limit_bytes)
            if end > extent.byte_count:
                larger = await uploads.room(upload, min(max(end, extent.byte_count * 2), limit_bytes))
                larger.view[:length] = extent.view[:length]
                extent.close()
                extent = larger
            extent.view[length:end] = piece
            length = upload.received_bytes = end
    except BaseException:
        if extent is not None:
            extent.close()
        raise
    finally:
        uploads.end(upload)
    return SlabBody(extent, length)


async def _next_of(upload: Upload, request: web.BaseRequest, silence_s: float) -> bytes:
    """`next_piece` of a body that may be given up while it is waited for."""
    if request.content.is_eof() and request.content.exception() is None:
        return request.content.read_nowait()
    try:
        async with asyncio.timeout(silence_s) as upload.patience:
            return await request.content.readany()
    except TimeoutError:
        upload.check()
        raise _silent(silence_s) from None
    except web.RequestPayloadError as error:
        raise _broken(error) from error
    finally:
        upload.patience = None
