"""The listener's life: accepting, settling, draining, stopping."""

from __future__ import annotations

import asyncio

import pytest

from gateway.api.client import HttpClient
from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from tests.api.harness import DEADLINE_S, Serving, Wire, ok, post


async def started(state: Serving) -> DataServer:
    server = DataServer(DataHandler(state.edge()), host="127.0.0.1", port=0, keepalive_timeout_s=5.0)
    state.port = await server.start()
    return server


async def test_draining_waits_for_what_is_in_flight_and_accepts_nothing_new() -> None:
    release = asyncio.Event()

    async def slow(client: HttpClient) -> None:
        await release.wait()
        await ok(client)

    state = Serving(slow)
    server = await started(state)
    wire = await Wire.to(state.port)
    await wire.send(post(b"in flight"))
    async with asyncio.timeout(DEADLINE_S):
        while not state.heads:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    drain = asyncio.create_task(
        server.drain(settle_s=0.0, timeout_s=DEADLINE_S, inflight=lambda: len(state.heads) - len(state.ended))
    )
    assert server._sites
    listener = server._sites[0]._server
    assert isinstance(listener, asyncio.Server)
    async with asyncio.timeout(DEADLINE_S):
        while listener.is_serving():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    with pytest.raises(ConnectionRefusedError):
        await Wire.to(state.port)
    assert not drain.done()
    release.set()
    assert (await wire.answer()).body == b"in flight"
    assert await drain
    wire.close()
    await server.stop()
    state.slab.close()


async def test_draining_waits_until_a_slow_client_has_its_last_bytes() -> None:
    async def fill(client: HttpClient) -> None:
        await client.start(200, (), None)
        # Until the kernel takes no more, now and in a while: then the exchange ends, and its last bytes have not left.
        held = 0
        while held < 50:
            if server._unsent_bytes():
                held += 1
                await asyncio.sleep(0.002)
            else:
                held = 0
                await client.write(bytes(32_768))
        await client.finish()

    state = Serving(fill)
    server = await started(state)
    wire = await Wire.to(state.port)
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's, which reads
    await wire.send(post())
    async with asyncio.timeout(DEADLINE_S):
        while not state.ended:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    drain = asyncio.create_task(server.drain(settle_s=0.0, timeout_s=DEADLINE_S, inflight=lambda: 0))
    await asyncio.wait((drain,), timeout=0.1)
    assert not drain.done()
    assert server._unsent_bytes()
    wire.writer.transport.resume_reading()  # type: ignore[attr-defined]  # the same
    rest = asyncio.create_task(wire.rest())
    assert await drain
    await server.stop()
    assert (await rest).endswith(b"0\r\n\r\n")
    wire.close()
    state.slab.close()


async def test_while_settling_new_connections_are_still_served() -> None:
    state = Serving(ok)
    server = await started(state)
    drain = asyncio.create_task(server.drain(settle_s=60.0, timeout_s=0.0, inflight=lambda: 0))
    await asyncio.sleep(0)
    wire = await Wire.to(state.port)
    await wire.send(post(b"late"))
    assert (await wire.answer()).body == b"late"
    drain.cancel()
    wire.close()
    await server.stop()
    state.slab.close()


async def test_what_does_not_end_in_time_is_cut() -> None:
    async def never(client: HttpClient) -> None:
        await client.start(200, (), None)
        await client.write(b"half")
        await asyncio.Event().wait()

    state = Serving(never)
    server = await started(state)
    wire = await Wire.to(state.port)
    await wire.send(post())
    await wire.head()
    assert not await server.drain(settle_s=0.0, timeout_s=0.01, inflight=lambda: 1)
    await server.stop()
    assert not (await wire.rest()).endswith(b"0\r\n\r\n")
    assert isinstance(state.ended[0], asyncio.CancelledError)
    wire.close()
    state.slab.close()


async def test_a_port_in_use_is_an_error() -> None:
    state = Serving(ok)
    server = await started(state)
    other = DataServer(DataHandler(state.edge()), host="127.0.0.1", port=state.port, keepalive_timeout_s=5.0)
    with pytest.raises(OSError, match="in use"):
        await other.start()
    await other.stop()
    await server.stop()
    state.slab.close()


async def test_processes_may_share_a_port() -> None:
    state = Serving(ok)
    servers = []
    for port in (0, None):
        server = DataServer(
            DataHandler(state.edge()), host="127.0.0.1", port=state.port if port is None else port,
            keepalive_timeout_s=5.0, reuse_port=True,
        )  # fmt: skip
        state.port = await server.start()
        servers.append(server)
    for server in servers:
        await server.stop()
    state.slab.close()


async def test_a_server_that_never_started_stops() -> None:
    state = Serving(ok)
    await DataServer(DataHandler(state.edge()), host="127.0.0.1", port=0, keepalive_timeout_s=5.0).stop()
    state.slab.close()
