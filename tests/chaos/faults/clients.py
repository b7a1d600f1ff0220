"""Clients that hold on: thousands that say nothing, slow heads, slow bodies, readers that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable

from tests.chaos.invariants import Excuse
from tests.chaos.load import KEYS
from tests.chaos.parts import until
from tests.chaos.run import Fault, Strike
from tests.simulator.process import chat

_IDLE = 10_000
_SPARE_DESCRIPTORS = 1_500
_SLOW = 150
_READERS = 24
_DRIP_S = 0.3
# A reader that does not read has this little room, so that the engine is held back soon.
_ROOM_BYTES = 4096
_LARGE_BYTES = 6_000_000
_LARGE = 12

Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _head(length: int) -> bytes:
    lines = (
        "POST /v1/chat/completions HTTP/1.1", "Host: gateway", f"Authorization: Bearer {KEYS['crowd']}",
        "Content-Type: application/json", f"Content-Length: {length}",
    )  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


async def _slow_head(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\n")
    while True:
        await asyncio.sleep(_DRIP_S)
        writer.write(b"x-slow: 1\r\n")
        await writer.drain()


async def _slow_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_head(500_000) + b'{"model": "')
    while True:
        await asyncio.sleep(_DRIP_S)
        writer.write(b"x")
        await writer.drain()


async def _large_body(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All but the end, which never comes."""
    writer.write(_head(_LARGE_BYTES) + b'{"model": "' + b"x" * (_LARGE_BYTES - 1_000))
    await writer.drain()
    await asyncio.get_running_loop().create_future()


async def _no_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Asks for a long stream and takes nothing of it."""
    body = json.dumps(chat("a long story", stream=True, max_tokens=6_000, ignore_eos=True)).encode()
    writer.write(_head(len(body)) + body)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport is a duplex one
    await asyncio.get_running_loop().create_future()


async def _hold(port: int, count: int, client: Client) -> None:
    """So many of a kind until cancelled; what the gateway does to one of them is its business."""

    async def one() -> None:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM_BYTES)
        made.setblocking(False)
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=made)
            try:
                await client(reader, writer)
            finally:
                writer.transport.abort()

    async with asyncio.TaskGroup() as all_of_them:
        for _ in range(count):
            all_of_them.create_task(one())


def _crowd_of(count: int, client: Client, answers: int = 30) -> Callable[[Strike], None]:
    """They hold on while others are answered; then they leave."""

    def strike_them(strike: Strike) -> None:
        holding = strike.fleet.stage.begin(_hold(strike.fleet.gateway.port, count, client))
        strike.during(1.0)
        strike.answers(answers)
        holding.cancel()

    return strike_them


def idle_crowd(strike: Strike) -> None:
    """As many as descriptors allow, up to ten thousand; the load goes on among them."""
    gateway = strike.fleet.gateway
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(_IDLE, hard - _SPARE_DESCRIPTORS)
    before_bytes = gateway.family.memory_bytes()
    command = [sys.executable, "-m", "tests.chaos.crowd", str(gateway.port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        assert crowd.stdout is not None
        assert crowd.stdin is not None
        connected = int(crowd.stdout.readline())
        assert connected == count, f"only {connected} of {count} could connect"
        until(lambda: gateway.family.open_files() > count, "all of them accepted")
        strike.answers(30)
        each_kib = (gateway.family.memory_bytes() - before_bytes) / count / 1024
        crowd.stdin.close()
        stayed = int(crowd.stdout.readline())
    strike.notes.append(f"{count} idle connections, {each_kib:.1f} KiB each; {stayed} were open until they left")


FAULTS = (
    Fault("clients-idle", idle_crowd),
    Fault("clients-slow-heads", _crowd_of(_SLOW, _slow_head)),
    Fault("clients-slow-bodies", _crowd_of(_SLOW, _slow_body)),
    Fault("clients-not-reading", _crowd_of(_READERS, _no_reader)),
    # Their bodies fill the shared memory: others with a large body are told so, those with a small one need none of it.
    Fault("clients-fill-the-slab", _crowd_of(_LARGE, _large_body), excuse=Excuse(frozenset({"body_memory_exhausted"}))),
)  # fmt: skip
