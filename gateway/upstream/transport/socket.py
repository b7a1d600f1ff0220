"""A WebSocket to a backend: opened once, its verdict as that of any request, its frames as they come."""

from __future__ import annotations

import contextlib

import aiohttp

from gateway.errors import BackendLost
from gateway.types.websocket import Frame, received
from gateway.upstream.transport.connector import ClosedUnused
from gateway.upstream.transport.telling import told

CLOSE_TIMEOUT_S = 5.0
# Of all that ends the opening of one, what ends it before anything was sent.
NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ClosedUnused)


def conversations(
    connector: aiohttp.BaseConnector, connecting: aiohttp.ClientTimeout, line_bytes: int
) -> aiohttp.ClientSession:
    """The session that opens them, which adds, follows and repeats nothing of its own accord."""
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=connecting,
        max_line_size=line_bytes,
        max_field_size=line_bytes,
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        trace_configs=[_stays_where_it_is()],
    )
    session._retry_connection = False  # noqa: SLF001  # it sends a GET again whose connection was lost
    return session


def _stays_where_it_is() -> aiohttp.TraceConfig:
    """A redirect is an answer, and no way to somewhere else: aiohttp can be told so only by what it traces."""

    async def refuse(
        session: aiohttp.ClientSession,  # noqa: ARG001  # aiohttp's signature
        context: object,  # noqa: ARG001
        redirect: aiohttp.TraceRequestRedirectParams,
    ) -> None:
        answer = redirect.response
        answer.close()
        raise aiohttp.WSServerHandshakeError(answer.request_info, (), status=answer.status, message="a redirect")

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse)
    return trace


class EngineSocket:
    """An open conversation with a backend (``talking.Socket``)."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    @property
    def subprotocol(self) -> str | None:
        return self._socket.protocol

    async def receive(self, silence_s: float) -> Frame:
        """The next frame; a close at the end, whatever ended it. Raises TimeoutError."""
        message = await self._socket.receive(timeout=silence_s)
        return received(message.type, message.data, message.extra, self._socket.close_code)

    async def send(self, frame: Frame) -> None:
        """Send on, waiting while the backend is slow. Raises BackendLost."""
        try:
            await self._socket.send_frame(frame.data, aiohttp.WSMsgType(frame.kind))
        except (ConnectionError, aiohttp.ClientError) as error:
            raise BackendLost(detail=f"within the conversation: {told(error)}") from error

    async def close(self, code: int, reason: bytes = b"") -> None:
        """End it; safe to repeat."""
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            await self._socket.close(code=code, message=reason)
