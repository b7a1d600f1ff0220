"""What reached each backend, heard on the wire before it: request ids that came whole, and how each was answered.

Decided here: HTTP/1.1 framing of well-formed requests and answers, no more. It is the judge of "may have run": a
request of which every byte went to a backend may have run there, unless the backend answered that it did not (a
status of 400 or above), whatever became of the backend and of its own records since.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.chaos.toxic import Ear, ToxicProxy

_HEAD_END = b"\r\n\r\n"
_LONGEST_HEAD_BYTES = 256 * 1024

Head = tuple[str, dict[str, str]]


@dataclass(slots=True, eq=False)
class Passage:
    """One request on its way through one connection. ``status`` is 0 while nothing was answered."""

    request_id: str
    backend: str
    is_whole: bool = False
    status: int = 0

    @property
    def may_have_run(self) -> bool:
        return self.is_whole and self.status < 400


@dataclass(slots=True)
class Ledger:
    """All passages by request id. Only generating requests (POST) with an id are kept."""

    passages: defaultdict[str, list[Passage]] = field(default_factory=lambda: defaultdict(list))
    ended: int = 0  # connections that are gone, each with what may have been in it unheard

    def runs(self, request_id: str) -> list[Passage]:
        """Where it may have run."""
        return [each for each in self.passages.get(request_id, ()) if each.may_have_run]

    def reached(self, request_id: str) -> bool:
        """Whether any byte of it went to a backend."""
        return request_id in self.passages

    def executed_twice(self) -> list[str]:
        """Ids that may have run more than once."""
        return sorted(request_id for request_id in self.passages if len(self.runs(request_id)) > 1)


class _Messages:
    """Cuts one direction into heads and bodies."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._step = self._head
        self._left = 0
        self._found: list[Head] = []

    @property
    def is_open(self) -> bool:
        """Whether a message has begun that is not whole yet."""
        return self._step != self._head

    def feed(self, data: bytes) -> list[Head]:
        """Heads that ended in these bytes."""
        self._text += data
        self._found = []
        while self._text and self._step():
            continue
        return self._found

    def _line(self, end: bytes) -> str | None:
        """Text before ``end``, taken off; ``None`` while it is not all there."""
        at = self._text.find(end)
        if at < 0:
            assert len(self._text) < _LONGEST_HEAD_BYTES, "no HTTP"
            return None
        line = self._text[:at].decode("latin-1")
        del self._text[: at + len(end)]
        return line

    def _head(self) -> bool:
        text = self._line(_HEAD_END)
        if text is None:
            return False
        first, *lines = text.split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        self._left = int(fields.get("content-length", "0"))
        if fields.get("transfer-encoding", "").lower() == "chunked":
            self._step = self._chunk
        elif self._left:
            self._step = self._body
        self._found.append((first, fields))
        return True

    def _body(self) -> bool:
        if self._skip():
            self._step = self._head
        return True

    def _chunk(self) -> bool:
        line = self._line(b"\r\n")
        if line is None:
            return False
        size = int(line.partition(";")[0], 16)
        self._left = size + 2  # its line end, which is all that there is behind the last
        self._step = self._chunk_body if size else self._body
        return True

    def _chunk_body(self) -> bool:
        if self._skip():
            self._step = self._chunk
        return True

    def _skip(self) -> bool:
        taken = min(self._left, len(self._text))
        del self._text[:taken]
        self._left -= taken
        return not self._left


class Eavesdropper:
    """Listens to one connection to one backend."""

    def __init__(self, backend: str, ledger: Ledger) -> None:
        self._backend = backend
        self._ledger = ledger
        self._asked, self._answered = _Messages(), _Messages()
        self._waiting: list[Passage | None] = []  # None: nothing that generates
        self._last: Passage | None = None

    def up(self, data: bytes) -> None:
        for first, fields in self._asked.feed(data):
            self._finish()
            passage = None
            if first.startswith("POST ") and "x-request-id" in fields:
                passage = Passage(fields["x-request-id"], self._backend)
                self._ledger.passages[passage.request_id].append(passage)
            self._waiting.append(passage)
            self._last = passage
        if not self._asked.is_open:
            self._finish()

    def down(self, data: bytes) -> None:
        for first, _ in self._answered.feed(data):
            status = int(first.split(" ")[1])
            if status >= 200 and self._waiting:
                passage = self._waiting.pop(0)
                if passage is not None:
                    passage.status = status

    def gone(self) -> None:
        self._ledger.ended += 1
        self._waiting.clear()

    def _finish(self) -> None:
        if self._last is not None:
            self._last.is_whole = True
            self._last = None


class OverheardProxy(ToxicProxy):
    """A toxic proxy before a backend that keeps a ledger."""

    def __init__(self, target_port: int, ledger: Ledger) -> None:
        super().__init__(target_port)
        self._ledger = ledger

    def ear(self) -> Ear:
        return Eavesdropper(f"{self.host}:{self.port}", self._ledger)
