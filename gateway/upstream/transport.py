"""The only HTTP client towards engines: send a request once, and know for certain what became of it.

What this file guarantees, each with a test on real sockets:

* One call, one request on the wire. aiohttp repeats idempotent requests after a lost connection; errors leave
  ``_no_resend`` as types that it does not repeat. Redirects, cookies, decompression, environment proxies, default
  headers: all off.
* An idle connection that the engine has closed is never written to: a pooled one is looked at (one ``poll``) first.
* *Not taken* is claimed only with proof: no connection, or the kernel had not accepted the whole body (the transport's
  own buffer is kept at zero while a body is sent), or a refusal the engine documents. Whatever else goes wrong raises
  BackendLost or BackendTimeout, because the request may have run.
* Bytes of the response are handed on as they come; its end is its proper end or BackendLost.
* Closing before the end cuts the connection at once, unsent bytes included, so the engine sees that nobody waits.
"""

from __future__ import annotations

import asyncio
import select
import socket
from abc import abstractmethod
from collections.abc import Sequence
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from gateway.errors import BackendLost, BackendTimeout, BackendUnreachable, BodyTooLarge, NotTaken
from gateway.ports import Client, UpstreamRequest
from gateway.types import BackendName, HeaderList
from gateway.upstream import headers
from gateway.upstream.engines.contract import ERROR_HEAD_BYTES, Engine
from gateway.upstream.registry import Backend
from gateway.upstream.settings import UpstreamSettings

# Below this a body goes out in one write, joined with the head.
_JOIN_BYTES = 64 * 1024
# Pieces of a large body: what the kernel does not take at once is copied, so no piece is much larger than its buffer.
_PIECE_BYTES = 256 * 1024
# aiohttp holds the engine back when more than this has come and nobody reads; then silence is our own doing.
_HELD_BACK_BYTES = 64 * 1024
_URLS_LIMIT = 512
_SKIPPED_HEADERS = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
# Long header lines from an engine are legitimate (load reports, trace state).
_HEADER_LIMIT_BYTES = 64 * 1024
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class _FreshConnector(aiohttp.TCPConnector):
    """Hands out no pooled connection that has something to read: between two exchanges that can only be its end."""

    def __init__(self, keepalive_s: float) -> None:
        super().__init__(limit=0, keepalive_timeout=keepalive_s, ttl_dns_cache=10)
        self._known: WeakSet[asyncio.BaseTransport] = WeakSet()
        self._poll = select.poll()

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
                self._known.add(transport)
                return connection
            if transport is not None and self._is_quiet(transport):
                return connection
            connection.close()

    def _is_quiet(self, transport: asyncio.BaseTransport) -> bool:
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return False
        descriptor = sock.fileno()
        self._poll.register(descriptor, select.POLLIN | select.POLLRDHUP)
        try:
            return not self._poll.poll(0)
        finally:
            self._poll.unregister(descriptor)


class _Upload(aiohttp.Payload):
    """A request body that knows how far it got: ``started`` and ``sent`` are the proof behind NotTaken.

    ``stall`` is the running time limit of the exchange, moved on whenever the backend took something.
    """

    def __init__(self, size: int | None, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(None)
        self._size = size
        self._stall: asyncio.Timeout | None = stall
        self._stall_s = stall_s
        self.started = False
        self.sent = False
        self.transport: asyncio.WriteTransport | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002 - aiohttp's signature
        """Only aiohttp's debugging aids want a payload as text."""
        raise TypeError("a request body that is being sent cannot be read back")

    async def write(self, writer: AbstractStreamWriter) -> None:
        self.started = True
        self.transport = writer.transport
        await self.write_body(writer)
        await writer.drain()
        self.progress()
        self.sent = True

    @abstractmethod
    async def write_body(self, writer: AbstractStreamWriter) -> None:
        """Hand every byte to ``writer``."""

    def progress(self) -> None:
        """The backend took something, so its time starts anew."""
        if self._stall is not None and not self._stall.expired():
            self._stall.reschedule(asyncio.get_running_loop().time() + self._stall_s)

    def pause(self) -> None:
        """Waiting for somebody else than the backend."""
        if self._stall is not None and not self._stall.expired():
            self._stall.reschedule(None)

    def unwatch(self) -> None:
        """The response has begun: its own time limits hold from here on, even if the body is still being sent."""
        self._stall = None

    def abandon(self) -> None:
        """Cut the connection, unsent bytes included, and let go of the body's memory."""
        if self.transport is not None:
            self.transport.abort()


class _Pieces(_Upload):
    """A body that lies in memory, as the splice made it. Holds views of it only until it is sent or abandoned."""

    def __init__(self, body: Sequence[bytes | memoryview], size: int, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(size, stall, stall_s)
        self._body = body
        self._view = memoryview(b"")

    async def write_body(self, writer: AbstractStreamWriter) -> None:
        if self.size is not None and self.size <= _JOIN_BYTES:
            await writer.write(self._body[0] if len(self._body) == 1 else b"".join(self._body))
        else:
            writer.send_headers()
            for chunk in self._body:
                self._view = memoryview(chunk)
                for start in range(0, len(chunk), _PIECE_BYTES):
                    await writer.write(self._view[start : start + _PIECE_BYTES])
                    await writer.drain()
                    self.progress()
                self._view.release()
        self._body = ()

    def abandon(self) -> None:
        super().abandon()
        self._body = ()
        self._view.release()


class _Relayed(_Upload):
    """A body read from the client while it is sent on; the time the client takes is not the backend's."""

    def __init__(self, client: Client, limit_bytes: int, stall: asyncio.Timeout, stall_s: float) -> None:
        super().__init__(client.head.content_length, stall, stall_s)
        self._client = client
        self._limit_bytes = limit_bytes
        self.read_bytes = 0
        self.client_failure: Exception | None = None

    async def write_body(self, writer: AbstractStreamWriter) -> None:
        while chunk := await self._next():
            await writer.write(chunk)
            await writer.drain()

    async def _next(self) -> bytes:
        self.pause()
        try:
            chunk = await self._client.chunk()
            self.read_bytes += len(chunk)
            if self.read_bytes > self._limit_bytes:
                raise BodyTooLarge(rule="max_body_bytes")
        except Exception as failure:
            self.client_failure = failure
            raise
        self.progress()
        return chunk


class EngineResponse:
    """A response being received (``ports.UpstreamResponse``).

    ``stripped_headers`` counts the steering headers taken from the request.
    """

    __slots__ = ("_ahead", "_response", "_upload", "content_length", "headers", "status", "stripped_headers")

    def __init__(self, response: aiohttp.ClientResponse, upload: _Upload | None, stripped_headers: int) -> None:
        self._response = response
        self._upload = upload
        self._ahead: list[bytes] = []
        self.status = response.status
        self.headers: HeaderList = headers.incoming(response.headers.items())
        self.content_length = response.content_length
        self.stripped_headers = stripped_headers

    async def chunk(self) -> bytes:
        """The next bytes as they came, ``b""`` at the proper end. Raises BackendLost, BackendTimeout."""
        if self._ahead:
            return self._ahead.pop(0)
        return await self._receive()

    async def _receive(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.SocketTimeoutError as error:
            raise BackendTimeout(detail="silent within the response") from error
        except (aiohttp.ClientError, OSError) as error:
            raise BackendLost(detail=f"within the response: {type(error).__name__}: {error}") from error

    async def read_ahead(self, limit_bytes: int) -> bytes | None:
        """The whole body, which ``chunk`` will give again; ``None`` if it is longer than the limit."""
        size = 0
        while size <= limit_bytes:
            chunk = await self._receive()
            if not chunk:
                return b"".join(self._ahead)
            self._ahead.append(chunk)
            size += len(chunk)
        return None

    def limit_silence(self, idle_s: float) -> None:
        """From now on ``idle_s`` without a byte end the response (not while we hold the engine back)."""
        connection = self._response.connection
        protocol = None if connection is None else connection.protocol
        if protocol is None:
            return
        protocol.read_timeout = idle_s
        if self._response.content.total_bytes < _HELD_BACK_BYTES:
            protocol.start_timeout()

    def close(self) -> None:
        """Give the connection back if the response was read to its end, else cut it at once."""
        connection = self._response.connection
        if connection is not None:
            if self._upload is not None:
                self._upload.abandon()
            elif connection.transport is not None:
                connection.transport.abort()
        self._response.close()


class Transport:
    """Sends requests to backends. ``open`` before the first one, ``close`` after the last."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[tuple[BackendName, str], URL] = {}

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=_FreshConnector(self._settings.keepalive_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_SKIPPED_HEADERS,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._settings.connect_timeout_s),
            max_line_size=_HEADER_LIMIT_BYTES,
            max_field_size=_HEADER_LIMIT_BYTES,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def forward(self, backend: Backend, request: UpstreamRequest) -> EngineResponse:
        """Send a body that lies in memory, once. Raises NotTaken, BackendLost, BackendTimeout."""
        stall = asyncio.timeout(None)
        upload = None
        if request.body:
            upload = _Pieces(request.body, request.body_bytes, stall, self._settings.response_timeout_s)
        return await self._exchange(backend, request, upload, stall)

    async def stream(
        self, backend: Backend, request: UpstreamRequest, client: Client, limit_bytes: int
    ) -> EngineResponse:
        """Send a body while it is read from the client, once.

        Raises NotTaken (nothing was read from the client yet), BackendUnreachable (something was, so it cannot go
        elsewhere), BackendLost, BackendTimeout, BodyTooLarge and whatever reading from the client raises.
        """
        stall = asyncio.timeout(None)
        upload = None
        if client.head.content_length != 0 and (request.method not in _BODILESS or client.head.content_length):
            upload = _Relayed(client, limit_bytes, stall, self._settings.response_timeout_s)
        try:
            return await self._exchange(backend, request, upload, stall)
        except (NotTaken, BackendLost, BackendTimeout) as failure:
            if upload is not None and upload.client_failure is not None:
                raise upload.client_failure from None
            if isinstance(failure, NotTaken) and failure.response is None and upload is not None and upload.read_bytes:
                raise BackendUnreachable(detail=str(failure)) from failure
            raise

    async def _exchange(
        self, backend: Backend, request: UpstreamRequest, upload: _Upload | None, stall: asyncio.Timeout
    ) -> EngineResponse:
        outgoing = headers.outgoing(request.headers, self._hop(backend), keep_authorization=self._keeps_keys(backend))
        try:
            async with stall:
                if upload is None:
                    stall.reschedule(asyncio.get_running_loop().time() + self._settings.response_timeout_s)
                received = await self._opened().request(
                    request.method,
                    self._url(backend, request),
                    headers=outgoing.headers,
                    data=upload,
                    allow_redirects=False,
                    middlewares=_NO_RESEND if request.method in _IDEMPOTENT else (),
                )
        except (aiohttp.ClientError, OSError) as error:
            _abandon(upload)
            raise _verdict(error, upload, timed_out=stall.expired()) from error
        except BaseException:
            _abandon(upload)
            raise
        if upload is not None:
            upload.unwatch()
        response = EngineResponse(received, upload, outgoing.stripped)
        response.limit_silence(self._settings.idle_timeout_s)
        if received.status >= 500 and received.content_type != "text/event-stream":
            await _raise_refusal(backend.engine, response)
        return response

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        return self._session

    def _url(self, backend: Backend, request: UpstreamRequest) -> URL:
        """Path and query as received: nothing is decoded, encoded or normalised on the way."""
        if request.query:
            return URL(f"{backend.root}{request.path}?{request.query}", encoded=True)
        key = (backend.name, request.path)
        url = self._urls.get(key)
        if url is None:
            url = URL(backend.root + request.path, encoded=True)
            if len(self._urls) < _URLS_LIMIT:
                self._urls[key] = url
        return url

    def _hop(self, backend: Backend) -> tuple[tuple[str, str], ...]:
        key = backend.settings.api_key
        return () if key is None else (("Authorization", f"Bearer {key}"),)

    def _keeps_keys(self, backend: Backend) -> bool:
        return self._settings.forward_authorization and backend.settings.api_key is None


def _abandon(upload: _Upload | None) -> None:
    if upload is not None:
        upload.abandon()


def _verdict(error: Exception, upload: _Upload | None, *, timed_out: bool) -> NotTaken | BackendLost | BackendTimeout:
    """What a failure before the response's head proves."""
    detail = f"{type(error).__name__}: {error}"
    unconnected = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if unconnected or (upload is not None and not upload.started):
        return NotTaken("connect", detail)
    if upload is not None and not upload.sent:
        return NotTaken("body_not_sent", detail)
    if timed_out:
        return BackendTimeout(detail="no response head in time")
    return BackendLost(detail=f"before the response: {detail}")


async def _raise_refusal(engine: Engine, response: EngineResponse) -> None:
    """Raise NotTaken, with the response to be relayed if there is nowhere else to go."""
    try:
        body = await response.read_ahead(ERROR_HEAD_BYTES)
    except BaseException:
        response.close()
        raise
    reason = None if body is None else engine.refusal(response.status, body)
    if reason is not None:
        raise NotTaken(reason, f"status {response.status}", response)


class _Broken(aiohttp.ClientError):
    """A lost connection in a type that aiohttp does not answer by sending the request again."""


async def _no_resend(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken(f"{type(error).__name__}: {error}") from error


_NO_RESEND = (_no_resend,)
