"""Which pooled connections may be used: the last used first, none that has something to read, none idle too long.

Between two exchanges an engine has nothing to say, so whatever is readable is the end of the connection (or rubbish).
The loop may not have seen it yet: uvicorn closes idle connections after 5 s, some servers right after a response that
announced keep-alive. A request that crosses that end may have run for all we know, so none may come near it. Hence the
order, and hence the kernel is asked how long ago the engine sent its last byte: a loop that was held up reads an answer
late, and by its own clock a connection is younger than its engine takes it for. Asking costs two microseconds.
What the loop did see is asked of the protocol: an answer to nobody would be taken for the next request's.

A new connection is asked about as well: the kernel had it, and the engine may have given it up, before such a loop
heard of it. Nothing was sent then, so another one is opened, once.
"""

from __future__ import annotations

import asyncio
import select
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_exceptions import UnixClientConnectorError
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from gateway.upstream.transport.protocol import EngineProtocol

# Where Linux tells, in milliseconds, when the last data came: tcpi_last_data_recv of struct tcp_info (linux/tcp.h), the
# twelfth of the 32-bit fields behind eight bytes.
_LAST_DATA = slice(52, 56)
_ENDED = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)


class ClosedUnused(aiohttp.ServerDisconnectedError):
    """New connections ended before anything was sent on them."""


class FreshConnector(aiohttp.TCPConnector):
    """A pool without limits (the journey bounds what is in flight) that hands out only quiet connections."""

    def __init__(self, keepalive_s: float, sockets: Mapping[str, str] | None = None) -> None:
        """``sockets`` are Unix sockets by the host that stands for each; others may come to stand in it."""
        super().__init__(limit=0, keepalive_timeout=keepalive_s, ttl_dns_cache=10)
        self._factory = cast("partial[ResponseHandler]", partial(EngineProtocol, loop=self._loop))
        self._sockets = {} if sockets is None else sockets
        self._idle_limit_ms = int(keepalive_s * 1000)
        self._known: WeakKeyDictionary[asyncio.BaseTransport, _Watch | None] = WeakKeyDictionary()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        opened = 0
        while True:
            connection = await super().connect(req, traces, timeout)
            transport = connection.transport
            is_new = transport is None or transport not in self._known
            opened += is_new
            if transport is not None and is_new:
                # No water marks: from here on ``drain`` returns when the kernel has everything.
                # (asyncio's TLS, as of 3.11, pauses from its mark on, not above it: at 0 for nothing, and for good.)
                is_tls = transport.get_extra_info("sslcontext") is not None
                transport.set_write_buffer_limits(high=1 if is_tls else 0, low=0)
                self._known[transport] = _watch(transport)
            protocol = connection.protocol
            has_spoken = protocol is None or protocol.should_close
            if transport is not None and not has_spoken and self._is_fresh(transport, is_new=is_new):
                return connection
            connection.close()
            if opened > 1:
                raise ClosedUnused("closed before anything was sent")

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """Where aiohttp takes the one that was idle longest, so that all of them grow old, put this one before it."""
        super()._release(key, protocol, should_close=should_close)
        kept = self._conns.get(key)
        if kept and kept[-1][0] is protocol:
            assert isinstance(protocol, EngineProtocol), "the factory makes no others"
            protocol.rest()
            kept.rotate()

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
            _, protocol = await self._loop.create_unix_connection(self._factory, path)
        except OSError as error:
            raise UnixClientConnectorError(path, req.connection_key, error) from error
        return protocol

    def _is_fresh(self, transport: asyncio.Transport, *, is_new: bool) -> bool:
        """Whether it is quiet and young; of a closed one the descriptor may be somebody else's by now.

        On a new one an engine may speak first (TLS does, with its session tickets), but not have ended it.
        """
        if transport.is_closing():
            return False
        watch = self._known[transport]
        if watch is None:
            return False
        if is_new:
            return not watch.has_ended
        return watch.is_quiet and watch.idle_ms <= self._idle_limit_ms


@dataclass(frozen=True, slots=True)
class _Watch:
    """What the kernel tells of one connection."""

    sock: socket.socket
    poll: select.poll

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to read."""
        return not self.poll.poll(0)

    @property
    def has_ended(self) -> bool:
        """Whether the engine will say no more."""
        return any(events & _ENDED for _, events in self.poll.poll(0))

    @property
    def idle_ms(self) -> int:
        """Since the last data came; 0 where nobody tells: on a Unix socket, beside Linux."""
        if _TCP_INFO is not None:
            with suppress(OSError):
                told = self.sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _LAST_DATA.stop)
                return int.from_bytes(told[_LAST_DATA], sys.byteorder)
        return 0


def _watch(transport: asyncio.Transport) -> _Watch | None:
    """What tells of a connection, by its descriptor; ``None`` where it has none."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return None
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN | select.POLLRDHUP)
    return _Watch(sock, poll)
