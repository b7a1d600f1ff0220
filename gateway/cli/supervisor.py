"""``serve --processes N``: a parent that serves nothing itself and sees to N processes that do.

Decided here: ports (all share the data port by SO_REUSEPORT; process i has admin port base + i, the supervisor the base
itself), who is started again and when, what signals do: SIGTERM and SIGINT drain all, a second one ends all at once,
SIGHUP reloads all. A process that fails at the very start ends everything, with its exit code: its settings cannot be
used. One that is lost later is started again, after a pause that doubles while it does not last. Not decided here: what
a process does (``serve``), what the shared admin port answers (``supervision``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gateway.assembly.wiring import deployment_key
from gateway.cli.footing import reap
from gateway.cli.sibling import COMMAND, Part, Report
from gateway.config.settings import ServerSettings, Settings
from gateway.telemetry.log import JsonLog

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
# Who served this long is not failing at once.
LASTING_S = 30.0
_LEAVING = (signal.SIGTERM, signal.SIGINT)


class FailedAtStart(Exception):
    """A process ended before it served. ``code``: its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"a process ended with {code} before it served")
        self.code = code


class Sibling:
    """One place among the processes, whoever holds it now. ``admin_port`` is 0 while nobody serves."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.admin_port = 0
        self.process: asyncio.subprocess.Process | None = None
        self.generation = 0

    def signal(self, number: signal.Signals) -> None:
        """Send it, if somebody is there."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """``start``, then ``run`` until all have left."""

    def __init__(self, settings: Settings, flags: dict[str, object], config: Path | None, log: JsonLog) -> None:
        self._settings = settings
        self._flags = flags
        self._config = config
        self._log = log
        self._key = deployment_key(settings)  # one for all: drawn here where the settings name none
        self._leaving = asyncio.Event()
        self._reserved: list[socket.socket] = []
        self._keepers: list[asyncio.Task[int]] = []
        self._beginning = 0
        self.siblings: Sequence[Sibling] = [Sibling(i) for i in range(1, settings.server.processes + 1)]
        self.data_port = settings.server.port

    @property
    def is_leaving(self) -> bool:
        return self._leaving.is_set()

    async def start(self) -> None:
        """All serve when it returns. Raises OSError for a port that is taken, FailedAtStart."""
        self.data_port, self._reserved = reserve(self._settings.server)
        try:
            # Alone first: where settings cannot be used, one says so and not all.
            await self._begin(self.siblings[0])
            await asyncio.gather(*(self._begin(sibling) for sibling in self.siblings[1:]))
        except BaseException:
            for sibling in self.siblings:
                sibling.signal(signal.SIGKILL)
            self._let_go()
            raise

    async def run(self) -> int:
        """Until all have left; the exit code: 0, or the first that was none."""
        loop = asyncio.get_running_loop()
        self._keepers = [loop.create_task(self._keep(sibling)) for sibling in self.siblings]
        codes = await asyncio.gather(*self._keepers)
        self._let_go()
        return next((code for code in codes if code), 0)

    def pass_on(self, number: signal.Signals) -> None:
        """A signal for all. To be called on the loop."""
        if number in _LEAVING:
            self._leaving.set()
        for sibling in self.siblings:
            # Who does not serve yet reads everything anew anyway, and would be ended by a hangup.
            if sibling.admin_port or number in _LEAVING:
                sibling.signal(number)

    # --- one of them ------------------------------------------------------------------------------------------------

    async def _begin(self, sibling: Sibling) -> None:
        """Start one and wait until it serves. Raises FailedAtStart, OSError when there can be no process."""
        reading, writing = os.pipe()
        try:
            config = None if self._config is None else str(self._config)
            part = Part(self._own(sibling), config, self._key, os.getpid(), writing)
            sibling.process = process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(writing,),
                process_group=0,  # a terminal's signals come to the group: they are for the supervisor to pass on
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        assert process.stdin is not None, "asked for above"
        process.stdin.write(part.written())
        process.stdin.close()
        told = await _read_all(reading)
        if not told:
            raise FailedAtStart(await process.wait() or 1)
        sibling.admin_port = msgspec.json.decode(told, type=Report).admin_port
        sibling.generation += 1
        if self.is_leaving:  # told while nobody could hear
            sibling.signal(signal.SIGTERM)

    async def _keep(self, sibling: Sibling) -> int:
        """See to it that somebody serves there, until all leave; the last one's exit code."""
        loop = asyncio.get_running_loop()
        pause_s = FIRST_PAUSE_S
        while True:
            assert sibling.process is not None, "begun before"
            since_s = loop.time()
            code = await sibling.process.wait()
            sibling.admin_port = 0
            if self._leaving.is_set():
                return code if code >= 0 else 1
            pause_s = FIRST_PAUSE_S if loop.time() - since_s > LASTING_S else pause_s
            self._log.event("error" if code else "warning", "process_lost", process=sibling.number, code=code)
            while not await self._begun_again(sibling, pause_s):
                if self._leaving.is_set():
                    return 0
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _begun_again(self, sibling: Sibling, pause_s: float) -> bool:
        try:
            await asyncio.wait_for(self._leaving.wait(), pause_s)
        except TimeoutError:
            pass
        else:
            return False
        self._beginning += 1
        try:
            await self._begin(sibling)
        except (FailedAtStart, OSError) as error:
            self._log.event("error", "process_failed", process=sibling.number, reason=str(error))
            return False
        finally:
            self._beginning -= 1
            if os.getpid() == 1 and not self._beginning:  # one that begins is not known by its number yet
                reap({each.process.pid for each in self.siblings if each.process is not None})
        self._log.event("info", "process_back", process=sibling.number)
        return True

    def _own(self, sibling: Sibling) -> dict[str, object]:
        """The flags of one; how many there are stays as it was, whatever a file says by now."""
        server = self._settings.server
        admin_port = server.admin_port + sibling.number if server.admin_port else 0
        ports: dict[str, object] = {"server.port": self.data_port, "server.admin_port": admin_port}
        return {**self._flags, **ports, "server.processes": server.processes}

    def _let_go(self) -> None:
        for held in self._reserved:
            held.close()


def reserve(server: ServerSettings) -> tuple[int, list[socket.socket]]:
    """Hold the data port for processes that come and go; returns the real one. Raises OSError for one that is taken.

    A bound socket that does not listen gets no connections, and keeps strangers from the port while nobody serves.
    """
    port, held = server.port, []
    infos = socket.getaddrinfo(server.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, address in infos:
        with socket.socket(family, kind, protocol) as probe:  # sharing is for our own alone
            _prepare(probe, family)
            probe.bind((address[0], port, *address[2:]))
            port = probe.getsockname()[1]
        own = socket.socket(family, kind, protocol)
        held.append(own)
        _prepare(own, family)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own.bind((address[0], port, *address[2:]))
    return port, held


def _prepare(made: socket.socket, family: int) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


async def _read_all(fd: int) -> bytes:
    """What comes through a pipe until its last writer closes it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb"))
    try:
        return await reader.read()
    finally:
        transport.close()
