"""Which pooled connections may be used: none that has something to read.

Between two exchanges an engine has nothing to say, so whatever is readable is the end of the connection (or rubbish).
The loop may not have seen it yet: uvicorn closes idle connections after 5 s, some servers right after a response that
announced keep-alive. Asking the kernel costs about a microsecond.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Mapping
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_exceptions import UnixClientConnectorError
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace


class FreshConnector(aiohttp.TCPConnector):
    """A pool without limits (the journey bounds what is in flight) that hands out only quiet connections."""

    def __init__(self, keepalive_s: float, sockets: Mapping[str, str] | None = None) -> None:
        """``sockets`` are Unix sockets by the host that stands for each; others may come to stand in it."""
        super().__init__(limit=0, keepalive_timeout=keepalive_s, ttl_dns_cache=10)
        self._sockets = {} if sockets is None else sockets
        self._known: WeakKeyDictionary[asyncio.BaseTransport, select.poll | None] = WeakKeyDictionary()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            transport = connection.transport
            if transport is not None and transport not in self._known:
                # No water marks: from here on ``drain`` returns when the kernel has everything.
                transport.set_write_buffer_limits(high=0)
                self._known[transport] = _watch(transport)
                return connection
            if transport is not None and self._is_quiet(transport):
                return connection
            connection.close()

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        path = self._sockets.get(req.url.host or "") if self._sockets else None
        if path is None:
            return await super()._create_connection(req, traces, timeout)
        try:
            _, protocol = await self._loop.create_unix_connection(lambda: ResponseHandler(loop=self._loop), path)
        except OSError as error:
            raise UnixClientConnectorError(path, req.connection_key, error) from error
        return protocol

    def _is_quiet(self, transport: asyncio.Transport) -> bool:
        """Whether there is nothing to read; of a closed one the descriptor may be somebody else's by now."""
        if transport.is_closing():
            return False
        watch = self._known[transport]
        return watch is not None and not watch.poll(0)


def _watch(transport: asyncio.Transport) -> select.poll | None:
    """What tells whether a connection has something to read, by its descriptor; ``None`` where it has none."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return None
    watch = select.poll()
    watch.register(sock.fileno(), select.POLLIN | select.POLLRDHUP)
    return watch
