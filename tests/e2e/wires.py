"""Raw HTTP/1.1 on sockets for tests that compare bytes: one message read as it came, a backend that plays a script.

Decided here: how a message is taken apart (head, body, how it ended) without any library that could tidy it up. The
backend answers the probes of a gateway as an unknown engine does, everything else with the script of the moment.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

DEADLINE_S = 20.0
Headers = tuple[tuple[str, bytes], ...]


class Printer(Protocol):
    """What Hypothesis prints examples with."""

    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Message:
    """One request or response: first line, headers in order (names in lower case), body, and whether it is whole."""

    first_line: bytes
    headers: Headers
    body: bytes
    whole: bool = True

    def __repr__(self) -> str:
        said = (self.first_line, self.headers, self.body[:1500], len(self.body), self.whole)
        return f"Message{said!r}"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:  # Hypothesis's signature
        printer.text(repr(self))

    def all(self, name: str) -> list[bytes]:
        """The values of a header."""
        return [value for key, value in self.headers if key == name]


class Peer:
    """A socket whose messages are read one after the other; what belongs to the next one is kept."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(DEADLINE_S)
        self._left = b""
        self.closed = False

    def send(self, pieces: Sequence[bytes]) -> None:
        """Each piece in a write of its own."""
        for piece in pieces:
            self._socket.sendall(piece)

    def close(self) -> None:
        """Both directions, at once."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.closed = True

    def message(self, *, bodiless: bool = False) -> Message | None:
        """The next message; ``None`` if the other side closed before it. Interim responses (1xx) are passed over."""
        while True:
            head = self._until(b"\r\n\r\n")
            if head is None:
                return None
            first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            if not first.startswith(b"HTTP/1.1 1"):
                break
        headers = tuple(_parted(line) for line in lines)
        body, whole = self._body(first, headers, bodiless=bodiless)
        return Message(first, headers, body, whole)

    def _body(self, first: bytes, headers: Headers, *, bodiless: bool) -> tuple[bytes, bool]:
        found = dict(headers)
        is_response = first.startswith(b"HTTP/")
        if bodiless or (is_response and first.split(b" ")[1] in (b"204", b"304")):
            return b"", True
        if b"chunked" in found.get("transfer-encoding", b""):
            return self._chunks()
        if "content-length" in found:
            return self._exactly(int(found["content-length"]))
        if not is_response:
            return b"", True
        self.closed = True
        return self._rest(), True

    def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        while True:
            line = self._until(b"\r\n")
            if line is None:
                return body, False
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            piece, whole = self._exactly(size + 2)
            body += piece[:size]
            if not whole:
                return body, False
        while (line := self._until(b"\r\n")) not in (b"\r\n", None):
            pass
        return body, line is not None

    def _more(self) -> bool:
        try:
            piece = self._socket.recv(262144)
        except ConnectionError:
            piece = b""
        self._left += piece
        self.closed = self.closed or not piece
        return bool(piece)

    def _until(self, end: bytes) -> bytes | None:
        while (at := self._left.find(end)) < 0:
            if not self._more():
                return None
        found, self._left = self._left[: at + len(end)], self._left[at + len(end) :]
        return found

    def _exactly(self, count: int) -> tuple[bytes, bool]:
        while len(self._left) < count:
            if not self._more():
                break
        found, self._left = self._left[:count], self._left[count:]
        return found, len(found) == count

    def _rest(self) -> bytes:
        while self._more():
            pass
        found, self._left = self._left, b""
        return found


def _parted(line: bytes) -> tuple[str, bytes]:
    name, _, value = line.partition(b":")
    return name.decode("ascii").lower(), value.strip(b" \t")


@dataclass(frozen=True, slots=True)
class Script:
    """What the backend sends: pieces, each in a write of its own, and whether it closes afterwards."""

    pieces: tuple[bytes, ...]
    closes: bool

    def __repr__(self) -> str:
        return f"Script({b''.join(self.pieces)[:1500]!r}, {[len(p) for p in self.pieces]}, closes={self.closes})"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:  # Hypothesis's signature
        printer.text(repr(self))


_PROBES = {"/health": b"", "/v1/models": b'{"object":"list","data":[]}', "/metrics": b""}
_LOST = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@dataclass(slots=True)
class ScriptedBackend:
    """One backend on a port of its own; ``seen`` are the requests that were no probes."""

    script: Script = Script((), closes=True)
    # Not told with a failure: what 1,000 exchanges left here is longer than Hypothesis suffers.
    seen: list[Message] = field(default_factory=list, repr=False)
    _open: list[Peer] = field(default_factory=list, repr=False)
    _threads: list[threading.Thread] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0), backlog=64))

    def __enter__(self) -> ScriptedBackend:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._open:
            peer.close()
        for thread in self._threads:
            thread.join()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(Peer(connection),), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: Peer) -> None:
        self._open.append(peer)
        with contextlib.suppress(OSError):
            while not peer.closed and (request := peer.message()) is not None:
                path = request.first_line.split(b" ")[1].decode("latin-1")
                if request.first_line.startswith(b"GET "):
                    peer.send([_probe_answer(path)])
                    continue
                self.seen.append(request)
                script = self.script
                peer.send(script.pieces)
                if script.closes:
                    break
        peer.close()


def _probe_answer(path: str) -> bytes:
    body = _PROBES.get(path)
    if body is None:
        return _LOST
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def connect(port: int) -> Peer:
    """A client's connection."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Peer(connection)
