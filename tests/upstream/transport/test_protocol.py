"""A connection to an engine reads on where it was held back, and is not told to where it was not."""

from __future__ import annotations

import asyncio

from gateway.upstream.transport.protocol import EngineProtocol


class Valve(asyncio.Transport):
    """A transport that notes what it is told about reading."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.told.append("hold")

    def resume_reading(self) -> None:
        self.told.append("go on")


class Counted(EngineProtocol):
    """``received``: how often its parser was run."""

    received = 0

    def data_received(self, data: bytes) -> None:
        self.received += 1
        super().data_received(data)


async def test_a_connection_reads_on_only_where_it_was_held_back() -> None:
    valve, protocol = Valve(), Counted(asyncio.get_running_loop())
    protocol.connection_made(valve)
    protocol.set_response_params(read_until_eof=True, auto_decompress=False)
    protocol.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 2000004\r\n\r\nabcd")
    _, content = await protocol.read()
    assert content.read_nowait() == b"abcd"
    assert (valve.told, protocol.received) == ([], 1)
    protocol.data_received(b"x" * 1_000_000)
    assert valve.told == ["hold"]
    assert content.read_nowait() == b"x" * 1_000_000
    assert valve.told == ["hold", "go on"]
    protocol.data_received(b"y" * 1_000_000)
    assert content.read_nowait() == b"y" * 1_000_000
    assert valve.told[2:4] == ["hold", "go on"]
    assert content.is_eof()
    assert not protocol.should_close
