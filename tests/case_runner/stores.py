"""A real Redis server of the runner's own, for cases that take the shared store away."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from pathlib import Path

from tests.case_runner.wire import listen
from tests.redis_program import redis_program

_START_DEADLINE_S = 10.0


class NoStore(Exception):
    """There is no redis-server, or it does not start."""


class RedisServer:
    """One server on a port that stays its own. States: up, refuse (not there), freeze (accepts, answers nothing)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        held = listen("127.0.0.1", accepting=False)
        self.port = int(held.getsockname()[1])
        held.close()

    @property
    def url(self) -> str:
        """For gateway.yaml."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def set(self, state: str) -> None:
        """Bring it into a state. Raises NoStore."""
        match state:
            case "up":
                await self._start()
            case "refuse":
                await self.stop()
            case "freeze":
                self._signal(signal.SIGSTOP)
            case "flush":
                self._ask(b"FLUSHALL\r\n")
            case _:
                raise NoStore(f"store state {state!r} is unknown")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _ask(self, command: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(command)
            return connection.recv(64)

    async def _start(self) -> None:
        if self._process is not None:
            self._signal(signal.SIGCONT)
            return
        program = redis_program("redis-server")
        if program is None:
            raise NoStore("redis-server is not installed (Debian: redis-tools has it)")
        self._process = await asyncio.create_subprocess_exec(
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder),
            executable=program, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        until_s = asyncio.get_running_loop().time() + _START_DEADLINE_S
        while asyncio.get_running_loop().time() < until_s:
            with contextlib.suppress(OSError):
                if b"PONG" in self._ask(b"PING\r\n"):
                    return
            await asyncio.sleep(0.02)
        raise NoStore("redis-server does not answer")

    async def stop(self) -> None:
        """End it."""
        if self._process is None:
            return
        self._signal(signal.SIGKILL)
        await self._process.wait()
        self._process = None
