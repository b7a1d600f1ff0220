"""A raw HTTP origin for tests of the fetcher: it answers with any bytes, right or wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.media.fetch import Fetcher, FetchSettings

OWN_ADDRESS = "127.0.0.9"
NAME = "pictures.example.test"
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
FAR_S = 1e9

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Origin:
    """A raw HTTP origin on an address of its own: scripted answers by request target, every request kept."""

    answers: dict[str, bytes | Answer]
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    written_bytes: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            answer = self.answers[head.split(b" ")[1].decode()]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.gone.set()
            writer.close()

    @property
    def targets(self) -> list[str]:
        return [head.split(b" ")[1].decode() for head in self.heads]


@asynccontextmanager
async def origin(answers: dict[str, bytes | Answer], address: str = OWN_ADDRESS) -> AsyncIterator[Origin]:
    made = Origin(answers)
    server = await asyncio.start_server(made.serve, address, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def fetcher(
    total_timeout_s: float = 5.0,
    hosts: Mapping[str, tuple[tuple[str, ...], ...]] | None = None,
    cache_bytes: int = 1_000_000,
    ca_file: str | None = None,
) -> AsyncIterator[Fetcher]:
    made = Fetcher(
        FetchSettings(
            total_timeout_s=total_timeout_s,
            cache_bytes=cache_bytes,
            ca_file=ca_file,
            public_networks=(f"{OWN_ADDRESS}/32",),
            static_hosts={NAME: ((OWN_ADDRESS,),), **(hosts or {})},
        )
    )
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def ok(body: bytes = PNG, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(location: str) -> bytes:
    return b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location.encode() + b"\r\n\r\n"


async def get(
    client: Fetcher,
    url: str,
    max_bytes: int = 1_000_000,
    hosts: tuple[str, ...] | None = None,
    tenant: str = "t",
    take: Callable[[int], None] = lambda _: None,
) -> bytes:
    return await client.fetch(url, tenant=tenant, hosts=hosts, max_bytes=max_bytes, deadline_s=FAR_S, take=take)
