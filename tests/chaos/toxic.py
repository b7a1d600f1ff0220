"""A TCP proxy that makes a network as bad as it is told: slow, narrow, sliced, silent, cut, in either direction.

Decided here: what happens to bytes between two ends, direction by direction. Not decided here: what the bytes mean (an
``Ear`` may listen) and when the network turns bad. A toxin counts for connections that exist and for new ones alike,
from the moment it is set; ``heal`` takes all of them away. Nothing is invented or changed: what arrives is a prefix of
what was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from typing import Protocol

_READ_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: closing sends RST
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Toxin:
    """What one direction suffers.

    ``latency_s``: every read waits so long before it goes on. ``bytes_per_s``: no more than that. ``slice_bytes``:
    written in pieces of that size, each flushed. ``is_silent``: bytes are taken and go nowhere until it heals.
    ``cut_after_bytes``: a connection is reset, both ways, when so many bytes of this direction have passed since the
    toxin was set; ``ends_after_bytes``: the same, but this direction ends as if its sender had closed it, and the other
    stays open.
    """

    latency_s: float = 0.0
    bytes_per_s: float | None = None
    slice_bytes: int | None = None
    is_silent: bool = False
    cut_after_bytes: int | None = None
    ends_after_bytes: int | None = None


HEALTHY = Toxin()


class Ear(Protocol):
    """Hears what one connection really passed on, both ways."""

    def up(self, data: bytes) -> None: ...

    def down(self, data: bytes) -> None: ...

    def gone(self) -> None: ...


class Deaf:
    """An ear that hears nothing."""

    def up(self, data: bytes) -> None:
        return

    def down(self, data: bytes) -> None:
        return

    def gone(self) -> None:
        return


@dataclass(slots=True, eq=False)
class _Way:
    """One direction of one connection; ``passed`` counts since the toxin in force was set."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    passed: int = 0
    under: Toxin = HEALTHY


@dataclass(slots=True, eq=False)
class _Pair:
    ways: tuple[_Way, _Way]
    ear: Ear
    task: asyncio.Task[None] | None = None

    def reset(self) -> None:
        for way in self.ways:
            abort(way.writer)


@dataclass(slots=True, eq=False)
class ToxicProxy:
    """Listens on ``port`` (a free one by default) and passes on to ``target_port``. All methods belong to its loop."""

    target_port: int
    port: int = 0
    target_host: str = HOST
    host: str = HOST
    up: Toxin = HEALTHY
    down: Toxin = HEALTHY
    struck: int = 0  # connections that were cut, or one direction of which ended, before its sender's end
    _server: asyncio.Server | None = None
    _pairs: set[_Pair] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def connections(self) -> int:
        return len(self._pairs)

    async def start(self) -> None:
        await self.listen()

    async def listen(self) -> None:
        """Take connections (again), on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, self.host, self.port, reuse_address=True)
            self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Nobody listens any more: new connections are refused, those that are there stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def poison(self, *, up: Toxin | None = None, down: Toxin | None = None) -> None:
        """What is not named stays as it is."""
        self.up, self.down = up or self.up, down or self.down
        self._changed.set()
        self._changed = asyncio.Event()

    def heal(self) -> None:
        self.poison(up=HEALTHY, down=HEALTHY)

    def cut(self) -> None:
        """Reset every connection that is there."""
        for pair in tuple(self._pairs):
            self.struck += 1
            pair.reset()

    async def stop(self) -> None:
        self.refuse()
        tasks = [pair.task for pair in self._pairs if pair.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def ear(self) -> Ear:
        """What listens to one connection; a subclass has another."""
        return Deaf()

    # --- one connection ----------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(self.target_host, self.target_port)
        except OSError:
            abort(writer)
            return
        pair = _Pair((_Way(reader, back), _Way(there, writer)), self.ear(), asyncio.current_task())
        self._pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(pair, 0))
                both.create_task(self._pass(pair, 1))
        except* (OSError, _Cut):
            pair.reset()
        finally:
            self._pairs.discard(pair)
            pair.ear.gone()
            for way in pair.ways:
                way.writer.close()

    async def _pass(self, pair: _Pair, number: int) -> None:
        way = pair.ways[number]
        while data := await way.reader.read(_READ_BYTES):
            if not await self._write(pair, number, data):
                break
        with contextlib.suppress(OSError, RuntimeError):
            way.writer.write_eof()

    def _toxin(self, number: int) -> Toxin:
        return self.down if number else self.up

    async def _write(self, pair: _Pair, number: int, data: bytes) -> bool:
        """Pass it on as the toxins have it; ``False`` when this direction ends. Raises _Cut."""
        way, hear = pair.ways[number], pair.ear.down if number else pair.ear.up
        await self._wait(number)
        at = 0
        while at < len(data):
            toxin = self._toxin(number)
            if toxin is not way.under:
                way.under, way.passed = toxin, 0
            piece = data[at : at + (toxin.slice_bytes or len(data))]
            limit = toxin.cut_after_bytes if toxin.ends_after_bytes is None else toxin.ends_after_bytes
            ends = limit is not None and way.passed + len(piece) >= limit
            if ends and limit is not None:
                piece = piece[: max(0, limit - way.passed)]
            way.writer.write(piece)
            hear(piece)
            await way.writer.drain()
            way.passed += len(piece)
            at += len(piece)
            if ends:
                self.struck += 1
                if toxin.ends_after_bytes is None:
                    raise _Cut
                return False
            if toxin.bytes_per_s is not None:
                await self._pause(len(piece) / toxin.bytes_per_s)
            if toxin.slice_bytes is not None:
                await asyncio.sleep(0)
            if self._toxin(number).is_silent:
                await self._wait(number)
        return True

    async def _wait(self, number: int) -> None:
        """As long as this direction delays what comes, or is silent."""
        await self._pause(self._toxin(number).latency_s)
        while self._toxin(number).is_silent:
            await self._changed.wait()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond a change of the toxins."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)


class _Cut(Exception):
    """The connection is to be reset."""


def abort(writer: asyncio.StreamWriter) -> None:
    """Close with RST, so that the other side sees a reset and no end."""
    made: socket.socket | None = writer.get_extra_info("socket")
    if made is not None:
        with contextlib.suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
