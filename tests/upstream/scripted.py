"""An engine whose every byte and every rudeness is scripted, on a real socket."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

DEADLINE_S = 30.0


class SteadyClock:
    def now_s(self) -> float:
        return time.monotonic()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what must come to pass; fail when it does not."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the world's state, of which nobody tells
            await asyncio.sleep(0.002)


def json_response(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass(slots=True)
class Exchange:
    """One request as the engine got it, and the means to answer it badly."""

    head: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes = b""

    @property
    def target(self) -> str:
        return self.head.split(" ")[1]

    def headers(self, name: str) -> list[str]:
        lines = (line.split(": ", 1) for line in self.head.split("\r\n")[1:] if ": " in line)
        return [value for key, value in lines if key.lower() == name.lower()]

    async def read_body(self) -> None:
        if length := self.headers("content-length"):
            self.body = await self.reader.readexactly(int(length[0]))
        elif self.headers("transfer-encoding"):
            while size := int(await self.reader.readline(), 16):
                self.body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Close with RST: no linger, nothing flushed."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def left(self) -> None:
        """Wait until the peer has closed."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                return


Script: TypeAlias = Callable[[Exchange], Awaitable[None]]


def answering(response: bytes) -> Script:
    """Read the body, send this, keep the connection."""

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(response)

    return script


def routes(documents: Mapping[str, bytes]) -> Script:
    """A plain server of documents: 200 for those it has, 404 for the rest."""

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        document = documents.get(exchange.target)
        missing = json_response(b'{"detail":"Not Found"}', "404 Not Found")
        await exchange.send(missing if document is None else json_response(document))

    return script


@dataclass(slots=True)
class ScriptedEngine:
    """Runs ``script`` for every request; ``scripts`` (if given) for the first ones instead, in order."""

    script: Script
    scripts: list[Script] = field(default_factory=list)
    port: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    connections: int = 0
    closed_connections: int = 0
    _server: asyncio.Server | None = None
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        return [exchange.target for exchange in self.exchanges]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:  # those that never asked anything among them
            writer.transport.abort()
        await self._server.wait_closed()
        await until(lambda: self.closed_connections == self.connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                exchange = Exchange(head.decode("latin-1").removesuffix("\r\n\r\n"), reader, writer)
                self.exchanges.append(exchange)
                await (self.scripts.pop(0) if self.scripts else self.script)(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed_connections += 1
            writer.transport.abort()
