"""What is read of a response before it is handed on, because once a client has its head nothing can be taken back.

* An error's body: it may prove that the request was not taken (``engines``), or tell of a broken engine (``blame``).
* An answer of known, small size that is no stream: all of it, so that an engine which dies half-way is one clean error
  and not half a JSON document. A client can do nothing with a part of it, so it waits for nothing.
* The first event of a stream, where the engine may say there what others say by a status (SGLang). Such an engine
  writes its first event with its first token, so nothing is delayed; of other engines nothing is looked at.
"""

from __future__ import annotations

import re

from gateway.errors import NotTaken
from gateway.upstream.blame import is_engines_fault
from gateway.upstream.engines.contract import ERROR_HEAD_BYTES, Engine
from gateway.upstream.transport.response import EngineResponse

# Answers of a few thousand tokens with log probabilities; larger ones are relayed as they come.
WHOLE_BYTES = 256 * 1024
# A first event holds a role or a token; comments before it are skipped.
_FIRST_EVENT_BYTES = 64 * 1024
_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\r\n|\n|\r")


async def look_ahead(engine: Engine, response: EngineResponse) -> None:
    """Read what must be known first. Raises NotTaken (with what is to be relayed if there is nowhere else to go, or
    nothing), BackendLost, BackendTimeout."""
    if response.is_stream:
        if engine.refuses_in_streams and response.status == 200:
            await _look_at_stream(engine, response)
    elif response.status >= 500:
        await _look_at_error(engine, response)
    elif response.content_length is not None and response.content_length <= WHOLE_BYTES:
        await response.read_ahead(WHOLE_BYTES)


async def _look_at_error(engine: Engine, response: EngineResponse) -> None:
    body = await response.read_ahead(ERROR_HEAD_BYTES)
    reason = None if body is None else engine.refusal(response.status, body)
    if reason is not None:
        raise NotTaken(reason, f"status {response.status}", response)
    response.blamed = is_engines_fault(response.status, body or b"")


async def _look_at_stream(engine: Engine, response: EngineResponse) -> None:
    head = b""
    while (event := first_data(head)) is None and len(head) <= _FIRST_EVENT_BYTES:
        chunk = await response.peek()
        if not chunk:
            return
        head += chunk
    reason = None if event is None else engine.stream_refusal(event)
    if reason is not None:
        response.close()
        raise NotTaken(reason, "in the first event of a stream")


def first_data(head: bytes) -> bytes | None:
    """The data of the first event that has any; ``None`` while none is complete."""
    for block in _BLANK_LINE.split(head)[:-1]:
        lines = [line[5:].removeprefix(b" ") for line in _LINE_END.split(block) if line.startswith(b"data:")]
        if lines:
            return b"\n".join(lines)
    return None
