"""HTTP plumbing shared by both contracts: reading a body as FastAPI would, writing an event stream with its faults."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from aiohttp import web

from gateway.simulator.core import Core
from gateway.simulator.fields import Json, JsonObject
from gateway.simulator.record import Fault, FaultKind, Outcome, Record, abridged
from gateway.simulator.refusal import Refusal

CORE = web.AppKey("core", Core)
RECORD = web.RequestKey("record", Record)
FAULT = web.RequestKey("fault", Fault)


class DetailError(Exception):
    """An answer in FastAPI's own shape, `{"detail": …}`."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


async def read_object(request: web.Request) -> JsonObject:
    """The body as a JSON object. Raises Refusal 400 for another content type or a body that is no object, DetailError
    for a coded body."""
    body = await request.read()
    record = request[RECORD]
    record.body_bytes, record.body_sha256 = len(body), hashlib.sha256(body).hexdigest()
    if request.content_type != "application/json":
        raise Refusal(400, "Unsupported Media Type: Only 'application/json' is allowed", "Bad Request")
    try:
        parsed: Json = json.loads(body)
    except (ValueError, RecursionError) as error:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise DetailError(400, "There was an error parsing the body") from None
        message = (
            f"1 validation error:\n  {{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: {error}'}}"
        )
        raise Refusal(400, message, "Bad Request", "body") from None
    if not isinstance(parsed, dict):
        message = "1 validation error:\n  {'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'not an object'}"
        raise Refusal(400, message, "Bad Request", "body")
    core = request.app[CORE]
    if core.settings.record_api or core.settings.record:
        record.body = abridged(parsed)
    return parsed


def json_answer(payload: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer, compact as the engines' own."""
    return web.Response(body=_compact(payload), status=status, headers=headers, content_type="application/json")


def _compact(payload: Json) -> bytes:
    # A lone surrogate, which JSON can spell and UTF-8 cannot, is answered as a question mark.
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def drift_tokens(request: web.Request) -> int:
    """What an ordered fault adds to the reported usage."""
    fault = request.get(FAULT)
    return fault.tokens if fault is not None and fault.kind is FaultKind.USAGE_DRIFT else 0


def event(payload: Json, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: ".encode() + _compact(payload) + b"\n\n"


DONE = b"data: [DONE]\n\n"
_MID_STREAM = frozenset(
    {
        FaultKind.RESET_MID_STREAM,
        FaultKind.CLOSE_MID_STREAM,
        FaultKind.HANG_MID_STREAM,
        FaultKind.ERROR_MID_STREAM,
    }
)


async def send_events(
    request: web.Request, events: AsyncGenerator[bytes], error_event: bytes, headers: dict[str, str] | None = None
) -> web.StreamResponse:
    """Write an event stream; the status goes out before the first event is made. `error_event` is the contract's
    in-stream error, sent when a fault orders it."""
    response = web.StreamResponse(headers=headers)
    response.content_type = "text/event-stream"
    response.charset = "utf-8"
    response.enable_chunked_encoding()
    await response.prepare(request)
    fault = request.get(FAULT)
    after_events = fault.after_events if fault is not None and fault.kind in _MID_STREAM else None
    sent = 0
    async with aclosing(events):
        async for entry in events:
            if sent == after_events and fault is not None:
                request[RECORD].outcome = Outcome.FAULTED
                await _strike(request, response, fault, error_event)
                return response
            await response.write(entry)
            sent += 1
    await response.write_eof()
    return response


async def _strike(request: web.Request, response: web.StreamResponse, fault: Fault, error_event: bytes) -> None:
    """Act out a mid-stream fault."""
    transport = request.transport
    match fault.kind:
        case FaultKind.RESET_MID_STREAM:
            if transport is not None:
                transport.abort()
        case FaultKind.CLOSE_MID_STREAM:
            if transport is not None:
                transport.close()
        case FaultKind.HANG_MID_STREAM:
            await asyncio.get_running_loop().create_future()
        case FaultKind.ERROR_MID_STREAM:
            await response.write(error_event)
            await response.write(DONE)
            await response.write_eof()
        case _:
            return
