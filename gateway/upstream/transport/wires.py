"""Exchanges in flight on one backend, and which of them are cut once nobody listens there any more.

An engine that is told to leave closes its port first. What it still does for those it has taken differs: some finish
them (uvicorn's shutdown), some cut them, and some fall silent without closing anything (seen on vLLM 0.32: no byte and
no close for minutes). So a refused connection puts all that is in flight under suspicion; who receives something is
let go on, who receives nothing for a grace time is cut, even if something listens there again by then.
"""

from __future__ import annotations

from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import StreamReader

from gateway.types.cutting import cut_off
from gateway.upstream.transport.upload import Upload


class Wire:
    """One exchange: how much it has received so far, and the way to cut it. Costs a request two attributes."""

    __slots__ = ("_content", "_protocol", "_upload", "_wires")

    def __init__(self, wires: Wires, upload: Upload | None) -> None:
        self._wires = wires
        self._upload = upload
        self._protocol: ResponseHandler | None = None
        self._content: StreamReader | None = None
        wires.opened(self)

    def answered(self, protocol: ResponseHandler, content: StreamReader) -> None:
        self._protocol, self._content = protocol, content

    @property
    def heard_bytes(self) -> int:
        return -1 if self._content is None else self._content.total_bytes

    def cut(self) -> None:
        """Its end then looks like the loss of the connection that it is."""
        if self._protocol is None:
            if self._upload is not None:
                self._upload.cut()
        else:
            cut_off(self._protocol.transport)

    def end(self) -> None:
        """It is over, in whatever way. Safe to call twice."""
        self._wires.ended(self)


class Wires:
    """All exchanges of one backend. ``cut_count`` of them were cut so far."""

    __slots__ = ("_open", "_suspects", "cut_count")

    def __init__(self) -> None:
        self._open: set[Wire] = set()
        self._suspects: dict[Wire, tuple[int, float]] = {}
        self.cut_count = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_suspects(self) -> bool:
        return bool(self._suspects)

    def opened(self, wire: Wire) -> None:
        self._open.add(wire)

    def ended(self, wire: Wire) -> None:
        self._open.discard(wire)
        self._suspects.pop(wire, None)

    def suspect(self, now_s: float) -> None:
        """A connection was refused: whatever is open was taken by a process that no longer listens."""
        for wire in self._open:
            self._suspects.setdefault(wire, (wire.heard_bytes, now_s))

    def cut_silent(self, now_s: float, grace_s: float) -> int:
        """Cut the suspects that have received nothing for ``grace_s``; tells how many."""
        silent = []
        for wire, (heard_bytes, since_s) in self._suspects.items():
            if wire.heard_bytes != heard_bytes:
                self._suspects[wire] = (wire.heard_bytes, now_s)
            elif now_s - since_s >= grace_s:
                silent.append(wire)
        for wire in silent:
            del self._suspects[wire]
            wire.cut()
        self.cut_count += len(silent)
        return len(silent)
