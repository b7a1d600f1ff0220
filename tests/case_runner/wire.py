"""HTTP/1.1 on bare sockets, as both stand-ins and the client need it: every byte, flush, reset and moment is ours.

Decided here: reading heads and bodies, sending with a count of what the kernel took, and when the other side left.
Not decided here: what is answered. Times are ``time.monotonic()`` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

_RECEIVE_BYTES = 1 << 18
_LINGER_RESET = struct.pack("ii", 1, 0)
Headers = tuple[tuple[str, str], ...]


class Gone(Exception):
    """The other side closed or reset before what was asked for had come."""


class BadMessage(Exception):
    """What came is not HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Head:
    """A start line and header lines in their order; names keep their spelling."""

    start_line: str
    headers: Headers
    raw: bytes = b""

    def values(self, name: str) -> list[str]:
        """Every value of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str, default: str = "") -> str:
        """The first value of a header."""
        return next(iter(self.values(name)), default)

    def has(self, name: str) -> bool:
        """Whether a header is there at all."""
        return bool(self.values(name))

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.get("transfer-encoding").lower()


def parse_head(raw: bytes) -> Head:
    """Take a head apart (without its empty line). Raises BadMessage."""
    lines = raw.decode("latin-1").split("\r\n")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadMessage(f"a header line {line[:80]!r}")
        headers.append((name, value.strip(" \t")))
    return Head(lines[0], tuple(headers), raw)


def listen(address: str, port: int = 0, *, accepting: bool = True) -> socket.socket:
    """A bound socket. Without ``accepting`` the port is held but connections to it are refused."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    if accepting:
        listener.listen(128)
    return listener


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


@dataclass(slots=True, eq=False)
class Wire:
    """One connection. A task of its own reads all the time, so that the other side's leaving is seen at once."""

    sock: socket.socket
    buffer: bytearray = field(default_factory=bytearray)
    closed_at_s: float | None = None
    was_reset: bool = False
    sent_bytes: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _reader: asyncio.Task[None] | None = None

    def start(self) -> Wire:
        """Begin to read."""
        self.sock.setblocking(False)
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = asyncio.get_running_loop().create_task(self._read())
        return self

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(self.sock, _RECEIVE_BYTES):
                self.buffer += data
                self._news.set()
        except OSError:
            self.was_reset = True
        finally:
            self.closed_at_s = time.monotonic()
            self._news.set()

    async def more(self) -> None:
        """Wait for bytes. Raises Gone when there will be none."""
        if self.closed_at_s is not None:
            raise Gone
        self._news.clear()
        await self._news.wait()

    async def until_closed(self) -> None:
        """Wait until the other side has left."""
        while self.closed_at_s is None:
            self._news.clear()
            await self._news.wait()

    async def read_until(self, marker: bytes) -> bytes:
        """Bytes up to and without the marker, which is taken too."""
        while (at := self.buffer.find(marker)) < 0:
            await self.more()
        found = bytes(self.buffer[:at])
        del self.buffer[: at + len(marker)]
        return found

    async def read_exactly(self, count: int) -> bytes:
        """So many bytes."""
        while len(self.buffer) < count:
            await self.more()
        found = bytes(self.buffer[:count])
        del self.buffer[:count]
        return found

    async def read_head(self) -> Head:
        """The next head. Raises Gone, BadMessage."""
        return parse_head(await self.read_until(b"\r\n\r\n"))

    async def read_chunked(self, took: Callable[[bytes], None]) -> None:
        """A chunked body to its very end, each chunk handed to ``took``. Raises Gone, BadMessage."""
        while True:
            line = (await self.read_until(b"\r\n")).split(b";")[0].strip()
            try:
                size = int(line, 16)
            except ValueError:
                raise BadMessage(f"a chunk size {line[:40]!r}") from None
            if size == 0:
                while await self.read_until(b"\r\n"):
                    pass
                return
            left = size
            while left:  # pieces of a chunk count as they come
                while not self.buffer:
                    await self.more()
                piece = bytes(self.buffer[:left])
                del self.buffer[: len(piece)]
                left -= len(piece)
                took(piece)
            if await self.read_exactly(2) != b"\r\n":
                raise BadMessage("a chunk longer than it says")

    async def read_request_body(self, head: Head) -> bytes:
        """The body of a request, out of its framing."""
        if head.is_chunked:
            pieces: list[bytes] = []
            await self.read_chunked(pieces.append)
            return b"".join(pieces)
        return await self.read_exactly(int(head.get("content-length", "0")))

    async def send(self, data: bytes) -> None:
        """Send all; ``sent_bytes`` counts what the kernel has taken. Raises OSError when the other side left."""
        view = memoryview(data)
        while view:
            try:
                taken = self.sock.send(view)
            except (BlockingIOError, InterruptedError):
                await self._writable()
                continue
            self.sent_bytes += taken
            view = view[taken:]

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        descriptor = self.sock.fileno()
        loop.add_writer(descriptor, _settle, ready)
        try:
            await ready
        finally:
            loop.remove_writer(descriptor)

    def half_close(self) -> None:
        """Say that nothing more will be sent, and keep reading."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    async def close(self, *, reset: bool = False) -> None:
        """Close; with ``reset`` the other side gets RST instead of FIN."""
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self.sock.fileno() < 0:
            return
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        else:
            self.half_close()
        self.sock.close()


class Acceptor:
    """Accepts on one socket and serves each connection in a task of its own, until stopped."""

    def __init__(self, listener: socket.socket, serve: Callable[[Wire], Coroutine[Any, Any, None]]) -> None:
        self.listener = listener
        self._serve = serve
        self.wires: list[Wire] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop_task = asyncio.get_running_loop().create_task(self._accept())

    @property
    def port(self) -> int:
        """The port listened on."""
        return int(self.listener.getsockname()[1])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(self.listener)
            wire = Wire(sock).start()
            self.wires = [each for each in self.wires if each.sock.fileno() >= 0]
            self.wires.append(wire)
            task = loop.create_task(self._attend(wire))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attend(self, wire: Wire) -> None:
        try:
            with contextlib.suppress(Gone, OSError, BadMessage):
                await self._serve(wire)
        finally:
            await wire.close()

    async def drop_connections(self) -> None:
        """End every connection, in whatever state."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for wire in self.wires:  # also those whose task was ended before it began
            await wire.close()
        self.wires.clear()

    async def stop(self) -> None:
        """Stop listening and end every connection."""
        self._loop_task.cancel()
        await asyncio.gather(self._loop_task, return_exceptions=True)
        self.listener.close()
        await self.drop_connections()
