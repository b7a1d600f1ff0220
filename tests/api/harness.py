"""The real data server on a real port, with journeys of the test's own; and a client that speaks raw bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from gateway.api.client import HttpClient
from gateway.api.handler import DataHandler, Edge
from gateway.api.server import DataServer
from gateway.dialects import Dialect
from gateway.errors import GatewayError
from gateway.media.shm import Slab
from gateway.record import RequestHead
from gateway.types.paths import Lane

DEADLINE_S = 30.0
Journey = Callable[[HttpClient], Awaitable[None]]


@dataclass(slots=True)
class Answer:
    """One response as it came: head and body apart, chunks joined."""

    head: str
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(" ")[1])

    @property
    def headers(self) -> dict[str, str]:
        lines = (line.split(": ", 1) for line in self.head.split("\r\n")[1:])
        return {name.lower(): value for name, value in lines}

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Wire:
    """A client's connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def to(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> str:
        async with asyncio.timeout(DEADLINE_S):
            return (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n")

    async def answer(self, *, has_body: bool = True) -> Answer:
        async with asyncio.timeout(DEADLINE_S):
            found = Answer(await self.head(), b"")
            if not has_body:
                return found
            if length := found.headers.get("content-length"):
                found.body = await self.reader.readexactly(int(length))
            elif "transfer-encoding" in found.headers:
                while size := int(await self.reader.readline(), 16):
                    found.body += (await self.reader.readexactly(size + 2))[:-2]
                await self.reader.readexactly(2)
            return found

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self.writer.transport.abort()


def post(body: bytes = b"{}", *headers: str, path: str = "/v1/chat/completions", length: bool = True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: gateway", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def ok(client: HttpClient) -> None:
    body = await client.read(1 << 20)
    text = bytes(body.view(body.start, body.stop))
    body.close()
    await client.start(200, (("Content-Type", "text/plain"), ("x-request-id", client.head.request_id)), len(text))
    await client.write(text)
    await client.finish()


@dataclass(slots=True)
class Serving:
    """A running server. ``refused`` are the errors that the edge itself answered."""

    journey: Journey = ok
    ready: bool = True
    draining: bool = False
    body_silence_s: float = 5.0
    upload_grace_s: float = 2.0
    slab: Slab = field(default_factory=lambda: Slab(16 << 20))
    port: int = 0
    heads: list[RequestHead] = field(default_factory=list)
    ferried: list[str] = field(default_factory=list)
    refused: list[tuple[str, GatewayError]] = field(default_factory=list)
    ended: list[BaseException | None] = field(default_factory=list)

    async def travel(self, client: HttpClient, dialect: Dialect) -> None:
        self.heads.append(client.head)
        try:
            await self.journey(client)
        except GatewayError as error:
            self.ended.append(error)
            await client.refuse(error)
        except BaseException as error:
            self.ended.append(error)
            raise
        else:
            self.ended.append(None)

    async def ferry(self, client: HttpClient, name: str, lane: Lane) -> None:
        self.heads.append(client.head)
        self.ferried.append(name)
        body = b""
        try:
            while piece := await client.chunk():
                body += piece
        except GatewayError as error:
            await client.refuse(error)
            return
        await client.start(200, (), len(body))
        await client.write(body)
        await client.finish()

    async def refuse(self, client: HttpClient, name: str, error: GatewayError) -> None:
        self.refused.append((name, error))
        await client.refuse(error)

    def edge(self) -> Edge:
        return Edge(
            travel=self.travel,
            ferry=self.ferry,
            estimate=self.travel,
            prepare=self.travel,
            refuse=self.refuse,
            list_models=lambda head: b'{"object":"list","data":[]}',
            is_ready=lambda: self.ready,
            is_draining=lambda: self.draining,
            slab=self.slab,
            body_silence_s=self.body_silence_s,
            upload_grace_s=self.upload_grace_s,
        )


@asynccontextmanager
async def serving(journey: Journey = ok, **changes: Any) -> AsyncIterator[tuple[Serving, Wire]]:
    """A server and one connection to it."""
    state = Serving(journey, **changes)
    server = DataServer(DataHandler(state.edge()), host="127.0.0.1", port=0, keepalive_timeout_s=5.0)
    state.port = await server.start()
    wire = await Wire.to(state.port)
    try:
        yield state, wire
    finally:
        wire.close()
        await server.stop()
        assert state.slab.in_use_bytes == 0, "a body was not given back"
        state.slab.close()
