"""A response's bytes, from the backend to the client as they come, with the tail kept in which usage stands.

Decided here: that nothing is held back but by an editor, and how much of the end is remembered. Not decided here: the
response's head (``journey``), what an editor does (``answer``), what usage is worth (``journey``'s settlement).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.ports import Client, Clock, UpstreamResponse
from gateway.record import ExchangeRecord

# The engine's usage stands at the end of a response; 64 KiB hold it with room for a long last chunk.
USAGE_TAIL_BYTES = 64 * 1024


class Editor(Protocol):
    """Changes a response on its way: bytes in, what may go on out; at the end, what was held back."""

    def feed(self, chunk: bytes, /) -> bytes: ...
    def finish(self) -> bytes: ...


async def pump(
    client: Client,
    response: UpstreamResponse,
    editors: Sequence[Editor],
    record: ExchangeRecord,
    clock: Clock,
    answered: Callable[[], None],
) -> bytes:
    """Relay the whole body and finish the client's response; returns the backend's last bytes, unedited.

    Each editor is given what the one before lets pass. ``answered`` is called when the first bytes come: engines send
    the head of a stream before its first token.

    Raises what the backend's and the client's connections raise.
    """
    tail: deque[bytes] = deque()
    tail_bytes = 0
    while chunk := await response.chunk():
        if record.first_chunk_s is None:
            record.first_chunk_s = clock.now_s()
            answered()
        record.response_bytes += len(chunk)
        tail.append(chunk)
        tail_bytes += len(chunk)
        while tail_bytes - len(tail[0]) >= USAGE_TAIL_BYTES:
            tail_bytes -= len(tail.popleft())
        for editor in editors:
            chunk = editor.feed(chunk)  # what one lets pass is the next one's chunk
        if chunk:
            await client.write(chunk)
    rest = b""
    for editor in editors:
        rest = (editor.feed(rest) if rest else b"") + editor.finish()
    if rest:
        await client.write(rest)
    await client.finish()
    return b"".join(tail)
