"""Requests over keep-alive connections, so many at a time, from one thread: what ``wrk`` does, for bodies of any size.

An answer is read to its end, by its length, by its chunks or until the connection closes. The asker's own CPU is not
part of any figure; it runs on the backend's CPU.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.contenders import Contender

_READ_BYTES = 262_144
_SILENCE_LIMIT_S = 60.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LAST_CHUNK = b"0\r\n\r\n"

BodyOf = Callable[[int], bytes]
HeadersOf = Callable[[int], Mapping[str, str]]


@dataclass(slots=True)
class Answer:
    """One answer as it arrives. ``complete`` stays false if the connection ended inside it."""

    head: bytes = b""
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False
    _length: int | None = None
    _chunked: bool = False
    _early: bytearray = field(default_factory=bytearray)

    @property
    def status(self) -> int:
        """0 before there is a head."""
        return int(self.head[9:12]) if self.head else 0

    def header(self, name: str) -> str:
        """A header's value; empty if there is none."""
        found = re.search(rb"\r\n" + re.escape(name.encode()) + rb": *([^\r]*)", self.head, re.IGNORECASE)
        return found[1].decode("latin-1") if found else ""

    def feed(self, piece: bytes) -> bool:
        """Take what arrived, nothing if the connection ended; ``True`` when no more will come."""
        if not piece:
            self.complete = bool(self.head) and self._length is None and not self._chunked
            return True
        if not self.head:
            self._early += piece
            end = self._early.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.head, piece = bytes(self._early[: end + 2]), bytes(self._early[end + 4 :])
            length = _LENGTH.search(self.head)
            self._length = int(length[1]) if length else None
            self._chunked = length is None and _CHUNKED.search(self.head) is not None
        self.body += piece
        if self._length is not None:
            self.complete = len(self.body) >= self._length
        elif self._chunked:
            self.complete = self.body == _LAST_CHUNK or self.body.endswith(b"\r\n" + _LAST_CHUNK)
        return self.complete


def request(contender: Contender, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A chat request's bytes."""
    every = {"Host": "bench", "Content-Type": "application/json", **contender.headers, **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    return f"POST /v1/chat/completions HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


def ask_once(contender: Contender, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    """One request on a connection of its own, whatever comes of it. Raises OSError where nobody listens."""
    return send_raw(contender.port, request(contender, body, headers))


def send_raw(port: int, sent: bytes, silence_limit_s: float = _SILENCE_LIMIT_S) -> Answer:
    """Send these bytes and read one answer. Raises OSError (TimeoutError when nothing comes)."""
    answer = Answer()
    with socket.create_connection(("127.0.0.1", port), timeout=silence_limit_s) as connection:
        connection.sendall(sent)
        while True:
            try:
                piece = connection.recv(_READ_BYTES)
            except ConnectionResetError:
                piece = b""
            if answer.feed(piece):
                return answer


@dataclass(slots=True)
class _Lane:
    """One connection and the request it is at."""

    connection: socket.socket
    left: memoryview = field(default_factory=lambda: memoryview(b""))
    answer: Answer = field(default_factory=Answer)
    began_s: float = 0.0


class Askers:
    """Keep-alive connections to one contender."""

    def __init__(self, contender: Contender, concurrency: int) -> None:
        self._contender = contender
        self._selector = selectors.DefaultSelector()
        self._lanes = [_Lane(_connected(contender.port)) for _ in range(concurrency)]
        self._next = 0
        self._latencies_ms: list[float] = []

    def close(self) -> None:
        """Close all connections."""
        for lane in self._lanes:
            lane.connection.close()
        self._selector.close()

    def ask(self, body_of: BodyOf, count: int, headers_of: HeadersOf | None = None, *, first: int = 0) -> list[float]:
        """So many requests, from the ``first`` connection on; milliseconds of each.

        Raises RuntimeError unless every answer is a whole 200.
        """
        self._next, self._latencies_ms = 0, []
        pending = 0
        for lane in self._lanes[first : first + count]:
            self._start(lane, body_of, headers_of)
            pending += 1
        while pending:
            ready = self._selector.select(_SILENCE_LIMIT_S)
            if not ready:
                raise RuntimeError(f"{self._contender.name} has been silent for {_SILENCE_LIMIT_S:.0f} s")
            for key, _ in ready:
                lane = key.data
                if lane.left:
                    self._send(lane)
                    continue
                if not lane.answer.feed(lane.connection.recv(_READ_BYTES)):
                    continue
                self._finish(lane)
                if self._next < count:
                    self._start(lane, body_of, headers_of)
                else:
                    pending -= 1
        return self._latencies_ms

    def _start(self, lane: _Lane, body_of: BodyOf, headers_of: HeadersOf | None) -> None:
        number, self._next = self._next, self._next + 1
        sent = request(self._contender, body_of(number), headers_of(number) if headers_of else None)
        lane.left, lane.answer, lane.began_s = memoryview(sent), Answer(), time.perf_counter()
        self._selector.register(lane.connection, selectors.EVENT_WRITE, lane)
        self._send(lane)

    def _send(self, lane: _Lane) -> None:
        try:
            lane.left = lane.left[lane.connection.send(lane.left) :]
        except BlockingIOError:
            return
        if not lane.left:
            self._selector.modify(lane.connection, selectors.EVENT_READ, lane)

    def _finish(self, lane: _Lane) -> None:
        self._latencies_ms.append(1000 * (time.perf_counter() - lane.began_s))
        self._selector.unregister(lane.connection)
        if lane.answer.status != 200 or not lane.answer.complete:
            told = (lane.answer.head + lane.answer.body)[:400]
            raise RuntimeError(f"{self._contender.name} answered {told!r}")


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=_SILENCE_LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    return connection
