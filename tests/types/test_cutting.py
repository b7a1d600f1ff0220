"""A TLS connection that was closed twice is cut, and holds nothing; any other is aborted."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from gateway.types.cutting import cut_off, unsent_bytes
from tests.certificates import self_signed


async def test_closed_twice_is_cut(tmp_path: Path) -> None:
    papers = self_signed(tmp_path, "engine")
    ours = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.load_cert_chain(papers.certificate, papers.key)
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.transport.abort()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=ours)
    theirs = ssl.create_default_context(cafile=str(papers.certificate))
    port = server.sockets[0].getsockname()[1]
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=theirs)
    assert unsent_bytes(writer.transport) == 0
    for _ in range(2):
        writer.transport.close()
        cut_off(writer.transport)
        assert unsent_bytes(writer.transport) == 0
    async with asyncio.timeout(30):
        await ended.wait()
    server.close()
    await server.wait_closed()


def test_any_other_is_aborted() -> None:
    class Plain:
        aborted = 0

        def abort(self) -> None:
            self.aborted += 1

        def get_write_buffer_size(self) -> int:
            return 7

    plain = Plain()
    cut_off(plain)
    cut_off(None)
    assert (plain.aborted, unsent_bytes(plain), unsent_bytes(None)) == (1, 7, 0)
