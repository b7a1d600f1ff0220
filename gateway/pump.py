"""A response's bytes, from the backend to the client as they come, with the tail kept in which usage stands.

Decided here: that nothing is held back but by an editor, and how much of the end is remembered. Not decided here: the
response's head (``journey``), what an editor does (``answer``), what usage is worth (``journey``'s settlement).
"""

from __future__ import annotations

from collections import deque

from gateway.answer import AnswerEditor
from gateway.ports import Client, Clock, UpstreamResponse
from gateway.record import ExchangeRecord

# The engine's usage stands at the end of a response; 64 KiB hold it with room for a long last chunk.
USAGE_TAIL_BYTES = 64 * 1024


async def pump(
    client: Client, response: UpstreamResponse, editor: AnswerEditor | None, record: ExchangeRecord, clock: Clock
) -> bytes:
    """Relay the whole body and finish the client's response; returns the backend's last bytes, unedited.

    Raises what the backend's and the client's connections raise.
    """
    tail: deque[bytes] = deque()
    tail_bytes = 0
    while chunk := await response.chunk():
        if record.first_chunk_s is None:
            record.first_chunk_s = clock.now_s()
        record.response_bytes += len(chunk)
        tail.append(chunk)
        tail_bytes += len(chunk)
        while tail_bytes - len(tail[0]) >= USAGE_TAIL_BYTES:
            tail_bytes -= len(tail.popleft())
        if told := chunk if editor is None else editor.feed(chunk):
            await client.write(told)
    if editor is not None and (rest := editor.finish()):
        await client.write(rest)
    await client.finish()
    return b"".join(tail)
