"""The proxy passes on what it should and nothing else; every toxin does what it says and stops when healed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.toxic import ToxicProxy, Toxin

DATA = bytes(range(256)) * 40


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that sends back what comes, and ends when its client does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def proxied() -> AsyncIterator[ToxicProxy]:
    async with echo() as port:
        proxy = ToxicProxy(port)
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.stop()


async def ask(proxy: ToxicProxy, data: bytes = DATA) -> bytes:
    """Everything that comes back of what was sent. Raises ConnectionError for a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(data)
    writer.write_eof()
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


async def read_into(came: bytearray, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(64):
        came += data


async def connected(proxy: ToxicProxy) -> None:
    while not proxy.connections:  # noqa: ASYNC110 - the proxy tells nobody
        await asyncio.sleep(0.01)


async def test_nothing_changes_without_toxins() -> None:
    async with proxied() as proxy:
        assert await ask(proxy) == DATA


@pytest.mark.parametrize(
    "toxin", [Toxin(slice_bytes=7), Toxin(latency_s=0.01), Toxin(bytes_per_s=200_000, slice_bytes=1_000)]
)
async def test_a_slow_network_changes_nothing(toxin: Toxin) -> None:
    async with proxied() as proxy:
        proxy.poison(up=toxin, down=toxin)
        assert await ask(proxy) == DATA


async def test_a_cut_is_a_reset_and_what_came_before_is_a_prefix() -> None:
    async with proxied() as proxy:
        proxy.poison(down=Toxin(cut_after_bytes=1_000))
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(DATA)
        came = bytearray()
        with pytest.raises(ConnectionError):
            await read_into(came, reader)
        assert DATA.startswith(bytes(came))
        assert len(came) <= 1_000
        assert proxy.struck == 1
        writer.close()
        proxy.heal()
        assert await ask(proxy) == DATA


async def test_an_end_of_one_direction_leaves_the_other_open() -> None:
    async with proxied() as proxy:
        proxy.poison(up=Toxin(ends_after_bytes=1_000))
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(DATA)
        assert await reader.read(-1) == DATA[:1_000]
        writer.close()


async def test_a_silent_direction_speaks_when_it_is_healed() -> None:
    async with proxied() as proxy:
        proxy.poison(down=Toxin(is_silent=True))
        asking = asyncio.create_task(ask(proxy))
        await connected(proxy)
        done, _ = await asyncio.wait({asking}, timeout=0.1)
        assert not done
        proxy.heal()
        assert await asking == DATA


async def test_a_change_cuts_a_long_delay_short() -> None:
    async with proxied() as proxy:
        proxy.poison(up=Toxin(latency_s=1e6))
        asking = asyncio.create_task(ask(proxy))
        await connected(proxy)
        proxy.heal()
        assert await asking == DATA


async def test_a_refusing_proxy_keeps_what_is_open_and_listens_again_on_its_port() -> None:
    async with proxied() as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        port = proxy.port
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await ask(proxy)
        writer.write(b"two")
        assert await reader.readexactly(3) == b"two"
        await proxy.listen()
        assert proxy.port == port
        assert await ask(proxy) == DATA
        proxy.cut()
        with pytest.raises(ConnectionError):
            await read_into(bytearray(), reader)
        writer.close()


async def test_a_dead_target_is_a_reset() -> None:
    async with echo() as port:
        proxy = ToxicProxy(port)
    await proxy.start()
    with pytest.raises(ConnectionError):
        await ask(proxy)
    await proxy.stop()
