"""The client of the cases: writes exactly the given bytes and notes what came back and when.

Decided here: what is sent (byte for byte), how and when the client leaves. A response is read by its own framing; how
it ended is noted, not judged.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.case_runner.polling import until
from tests.case_runner.wire import BadMessage, Gone, Head, Wire

Ending = Literal["complete", "aborted", "no-response", "timeout", "client-left"]
_CONTINUE_WAIT_S = 3.0
_UNTIL_CLOSED_S = 3.0


@dataclass(frozen=True, slots=True)
class ClientCloses:
    """When the client leaves: after a time, after so many events, or its sending half only, after the body."""

    after_s: float | None = None
    after_events: int | None = None
    after_bytes: int | None = None
    half_close_after_body: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is written to the socket. ``expects_continue``: the head goes first and the body waits for 100."""

    head: bytes
    body: bytes
    expects_continue: bool = False


@dataclass(slots=True, eq=False)
class Response:
    """What came back. Times are monotonic seconds."""

    started_at_s: float
    head: Head | None = None
    head_at_s: float | None = None
    body: bytearray = field(default_factory=bytearray)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    interim: list[tuple[int, float]] = field(default_factory=list)
    ended_at_s: float = 0.0
    ending: Ending = "complete"
    problem: str = ""
    closed_afterwards: bool | None = None

    @property
    def status(self) -> int | None:
        """The final status, or None when there was none."""
        if self.head is None:
            return None
        parts = self.head.start_line.split(" ", 2)
        return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None

    @property
    def is_answered(self) -> bool:
        """Whether anything at all has come back."""
        return bool(self.interim) or self.head is not None

    @property
    def took_ms(self) -> float:
        """From the first byte written to the end."""
        return (self.ended_at_s - self.started_at_s) * 1000

    def took(self, data: bytes) -> None:
        """Add a piece of the body."""
        self.body += data
        self.arrivals.append((time.monotonic(), len(self.body)))

    def event_at_s(self, count: int = 1) -> float | None:
        """When the count-th event (ended by an empty line, comments not counted) was complete."""
        at, seen = 0, 0
        text = bytes(self.body).replace(b"\r\n", b"\n") if b"\r\n" in self.body else bytes(self.body)
        while (end := text.find(b"\n\n", at)) >= 0:
            lines = text[at:end].split(b"\n")
            at = end + 2
            seen += any(line and not line.startswith(b":") for line in lines)
            if seen >= count:
                return next((when for when, size in self.arrivals if size >= at), None)
        return None


def request_bytes(method: str, target: str, headers: Mapping[str, str], body: bytes, host: str) -> Outgoing:
    """A request by its parts; framed by Content-Length, or in chunks where the headers say so."""
    names = {name.lower(): value for name, value in headers.items()}
    lines = [f"{method} {target} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if "chunked" in names.get("transfer-encoding", "").lower():
        step = 64 * 1024
        pieces = [body[at : at + step] for at in range(0, len(body), step)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    elif "content-length" not in names and (body or method not in {"GET", "HEAD"}):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return Outgoing(head, body, "100-continue" in names.get("expect", "").lower())


def raw_bytes(raw: bytes) -> Outgoing:
    """A raw request as it is."""
    head, gap, body = raw.partition(b"\r\n\r\n")
    return Outgoing(head + gap, body, b"100-continue" in head.lower())


async def exchange(
    port: int,
    outgoing: Outgoing,
    *,
    deadline_s: float,
    closes: ClientCloses | None = None,
    watch_close: bool = False,
) -> Response:
    """Send one request on a connection of its own and read the response to its end."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    wire = Wire(sock).start()
    response = Response(time.monotonic())
    leaves = closes or ClientCloses()
    try:
        async with asyncio.timeout(deadline_s):
            await _converse(wire, outgoing, response, leaves)
    except TimeoutError:
        response.ending = "timeout"
    except (Gone, OSError):
        response.ending = "no-response" if response.head is None else "aborted"
    except BadMessage as error:
        response.ending, response.problem = "aborted", str(error)
    except asyncio.CancelledError:
        await wire.close()
        raise
    response.ended_at_s = time.monotonic()
    if watch_close and response.ending == "complete":
        response.closed_afterwards = await _closes(wire)
    await wire.close(reset=leaves.reset)
    return response


async def _closes(wire: Wire) -> bool:
    try:
        async with asyncio.timeout(_UNTIL_CLOSED_S):
            await wire.until_closed()
    except TimeoutError:
        return False
    return True


async def _converse(wire: Wire, outgoing: Outgoing, response: Response, leaves: ClientCloses) -> None:
    work = asyncio.create_task(_talk(wire, outgoing, response, leaves))
    try:
        if leaves.after_s is not None:
            done, _ = await asyncio.wait({work}, timeout=leaves.after_s)
            if not done:
                response.ending = "client-left"
                return
        await work
    finally:
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def _talk(wire: Wire, outgoing: Outgoing, response: Response, leaves: ClientCloses) -> None:
    await wire.send(outgoing.head)
    send = asyncio.create_task(_send_body(wire, outgoing, response, leaves))
    try:
        await _read_head(wire, response)
        assert response.head is not None
        reading = asyncio.create_task(_read_body(wire, response))
        leaving = asyncio.create_task(_until_leaving(response, leaves, reading))
        try:
            await leaving
            if reading.done():
                await reading
            else:
                response.ending = "client-left"
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    finally:
        send.cancel()
        await asyncio.gather(send, return_exceptions=True)


async def _until_leaving(response: Response, leaves: ClientCloses, reading: asyncio.Task[None]) -> None:
    if leaves.after_events is None and leaves.after_bytes is None:
        await asyncio.wait({reading})
        return
    while not reading.done():
        if leaves.after_events is not None and response.event_at_s(leaves.after_events) is not None:
            return
        if leaves.after_bytes is not None and len(response.body) >= leaves.after_bytes:
            return
        await asyncio.wait({reading}, timeout=0.005)


async def _send_body(wire: Wire, outgoing: Outgoing, response: Response, leaves: ClientCloses) -> None:
    if outgoing.expects_continue:
        await until(lambda: response.is_answered, within_s=_CONTINUE_WAIT_S, every_s=0.002)
        if response.head is not None:
            return
    try:
        await wire.send(outgoing.body)
    except OSError:
        return  # refused half-way: the response says why
    if leaves.half_close_after_body:
        wire.half_close()


async def _read_head(wire: Wire, response: Response) -> None:
    while True:
        head = await wire.read_head()
        parts = head.start_line.split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
            raise BadMessage(f"a status line {head.start_line[:60]!r}")
        if int(parts[1]) >= 200:
            response.head, response.head_at_s = head, time.monotonic()
            return
        response.interim.append((int(parts[1]), time.monotonic()))


async def _read_body(wire: Wire, response: Response) -> None:
    head = response.head
    assert head is not None
    if response.status in {204, 304}:
        return
    if head.is_chunked:
        await wire.read_chunked(response.took)
        return
    length = int(head.get("content-length")) if head.has("content-length") else None
    while length is None or len(response.body) < length:
        if not wire.buffer:
            try:
                await wire.more()
            except Gone:
                if length is None and not wire.was_reset:
                    return  # framed by the connection's end
                raise
            continue
        piece = bytes(wire.buffer[: None if length is None else length - len(response.body)])
        del wire.buffer[: len(piece)]
        response.took(piece)
