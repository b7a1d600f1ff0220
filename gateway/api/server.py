"""The data port's listener and its life: start, settle, drain, stop.

Decided here: how connections are accepted and let go. aiohttp would hide two defects that are handled here on purpose:
``handler_cancellation`` is off in its runners, so a client that left would keep its budget and its engine slot; and
``cleanup`` closes listeners first, so the settle phase (still accepting, already unready) comes before it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from aiohttp import web

from gateway.api.connection import Connections
from gateway.api.handler import DataHandler
from gateway.api.unix_socket import UnixListener
from gateway.types.cutting import unsent_bytes

# One readable chunk per body read: asyncio hands over up to 256 KiB at once.
READ_BUFFER_BYTES = 512 * 1024
# How long cut exchanges may take to say so and clean up, then twice more: aiohttp waits, cancels, waits. It takes 0 for
# no limit at all.
CUT_TIMEOUT_S = 0.1
# Connections that may wait to be accepted.
BACKLOG = 1024


class DataServer:
    """Listen on the data port. ``port`` is the real one after ``start``."""

    def __init__(
        self,
        handler: DataHandler,
        *,
        host: str,
        port: int,
        keepalive_timeout_s: float,
        reuse_port: bool = False,
        tls: ssl.SSLContext | None = None,
        unix: UnixListener | None = None,
        listens_on_tcp: bool = True,
    ) -> None:
        self._handler = handler
        self._host = host
        self._port = port
        self._keepalive_timeout_s = keepalive_timeout_s
        self._reuse_port = reuse_port
        self._tls = tls
        self._unix = unix
        self._listens_on_tcp = listens_on_tcp
        self._runner: web.ServerRunner | None = None
        self._sites: list[web.BaseSite] = []

    async def start(self) -> int:
        """Begin to accept; returns the port, 0 without one."""
        server = Connections(
            self._handler.handle,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=self._keepalive_timeout_s,
            read_bufsize=READ_BUFFER_BYTES,
            auto_decompress=False,
            # 8 KiB is aiohttp's default for one header line; API keys and trace state fit, attacks do not.
            max_headers=128,
        )
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=CUT_TIMEOUT_S)
        await self._runner.setup()
        port = 0
        if self._listens_on_tcp:
            site = web.TCPSite(
                self._runner,
                self._host,
                self._port,
                backlog=BACKLOG,
                reuse_port=self._reuse_port or None,
                ssl_context=self._tls,
            )
            await site.start()
            self._sites.append(site)
            port = int(self._runner.addresses[0][1])
        if self._unix is not None:
            unix_site = web.SockSite(self._runner, self._unix.socket, backlog=BACKLOG)
            await unix_site.start()
            self._sites.append(unix_site)
        return port

    async def drain(self, *, settle_s: float, timeout_s: float, inflight: Callable[[], int]) -> bool:
        """Accept for ``settle_s`` more, stop listening, wait for exchanges to end; ``False`` if some were left.

        An exchange ends when its last byte is written; a slow client's last bytes may still lie with us then, and would
        go with this process. They are waited for as well.
        """
        await asyncio.sleep(settle_s)
        for site in self._sites:
            await site.stop()
        self._sites.clear()
        deadline = asyncio.get_running_loop().time() + timeout_s
        while inflight() or self._unsent_bytes():
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    def _unsent_bytes(self) -> int:
        """What all connections hold that the kernel has not taken yet."""
        server = None if self._runner is None else self._runner.server
        connections = [] if server is None else server.connections
        return sum(unsent_bytes(connection.transport) for connection in connections)

    async def stop(self) -> None:
        """End what is left, at once: exchanges with their error, then connections."""
        await self._handler.cut(CUT_TIMEOUT_S)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._unix is not None:
            self._unix.remove()
