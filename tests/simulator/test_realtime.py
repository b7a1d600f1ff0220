"""The stand-in for realtime APIs: greets, echoes, ends as told."""

from __future__ import annotations

import aiohttp

from gateway.simulator.realtime import SUBPROTOCOL
from gateway.simulator.server import start
from gateway.simulator.settings import SimulatorSettings


async def test_it_greets_echoes_floods_and_ends_as_told() -> None:
    running = await start(SimulatorSettings(port=0))
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{running.url}/v1/realtime", protocols=(SUBPROTOCOL,)) as talk,
        ):
            assert (await talk.receive_json())["type"] == "session.created"
            await talk.send_str("flood 2 3")
            assert [await talk.receive_bytes() for _ in range(2)] == [b"xxx", b"xxx"]
            await talk.send_str("bye 4000 so")
            end = await talk.receive()
            assert (end.type, talk.close_code) == (aiohttp.WSMsgType.CLOSE, 4000)
    finally:
        await running.close()
