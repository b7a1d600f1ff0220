"""One request, one response, one verdict: the client session and what a failure proves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.errors import BackendFailed, BackendLost, BackendTimeout, BackendUnreachable, NotTaken
from gateway.ports import Client, UpstreamRequest
from gateway.upstream import headers
from gateway.upstream.engines.contract import REFUSALS
from gateway.upstream.registry import Backend
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.tls import TlsContexts
from gateway.upstream.transport.connector import FreshConnector
from gateway.upstream.transport.looking import look_ahead
from gateway.upstream.transport.response import EngineResponse
from gateway.upstream.transport.socket import CLOSE_TIMEOUT_S, EngineSocket
from gateway.upstream.transport.telling import told
from gateway.upstream.transport.upload import Pieces, Relayed, Upload
from gateway.upstream.transport.wires import Wire

_URLS_LIMIT = 512
# Long header lines from an engine are legitimate (load reports, trace state).
_HEADER_LIMIT_BYTES = 64 * 1024
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


class _PlainRequest(aiohttp.ClientRequest):
    """Sends the headers it is given and adds none (no Accept, no User-Agent, no Content-Type of its own)."""

    def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:  # noqa: ARG002  # aiohttp's signature
        self._skip_auto_headers = _NOTHING_ADDED


_NOTHING_ADDED: CIMultiDict[None] = CIMultiDict({"Content-Type": None})


class Transport:
    """Sends requests to backends. ``open`` before the first one, ``close`` after the last."""

    def __init__(self, settings: UpstreamSettings, contexts: TlsContexts | None = None) -> None:
        self._settings = settings
        self._contexts = contexts or TlsContexts()
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[tuple[str, str], URL] = {}
        self._sockets: dict[str, str] = {}
        self.admit(settings.backends)

    def admit(self, backends: Iterable[BackendSettings]) -> None:
        """Requests may go to these from now on."""
        for each in backends:
            if each.unix_path is not None:
                self._sockets[urlsplit(each.root).netloc] = each.unix_path

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=FreshConnector(self._settings.keepalive_s, self._sockets),
            request_class=_PlainRequest,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
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
            upload = Pieces(request.body, request.body_bytes, stall, self._settings.response_timeout_s)
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
            upload = Relayed(client, limit_bytes, stall, self._settings.response_timeout_s)
        try:
            return await self._exchange(backend, request, upload, stall)
        except (NotTaken, BackendLost, BackendTimeout) as failure:
            if upload is not None and upload.client_failure is not None:
                raise upload.client_failure from None
            if (
                isinstance(failure, NotTaken)
                and failure.reason not in REFUSALS
                and upload is not None
                and upload.read_bytes
            ):
                raise BackendUnreachable(detail=str(failure)) from failure
            raise

    async def _exchange(
        self, backend: Backend, request: UpstreamRequest, upload: Upload | None, stall: asyncio.Timeout
    ) -> EngineResponse:
        received_headers, hop = request.headers, self._hop(backend, request)
        lent = backend.settings.affinity_header
        if lent is not None:
            received_headers, hop = headers.lend(received_headers, hop, lent, request.affinity_key)
        outgoing = headers.outgoing(received_headers, hop, keep_authorization=self._keeps_keys(backend))
        wire = Wire(backend.wires, upload)
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
                    ssl=self._contexts.of(backend.settings) if backend.root.startswith("https:") else True,
                    server_hostname=backend.settings.tls_server_name,
                    middlewares=_NO_RESEND if request.method in _IDEMPOTENT else (),
                )
        except (aiohttp.ClientError, OSError) as error:
            wire.end()
            _abandon(upload)
            raise _verdict(error, upload, timed_out=stall.expired()) from error
        except BaseException:
            wire.end()
            _abandon(upload)
            raise
        wire.answered(received)
        if upload is not None:
            upload.unwatch()
        response = EngineResponse(received, upload, wire, outgoing.stripped)
        response.limit_silence(self._settings.idle_timeout_s)
        try:
            await look_ahead(backend.engine, response)
        except NotTaken:
            raise
        except BaseException:
            response.close()
            raise
        return response

    async def open_socket(
        self, backend: Backend, request: UpstreamRequest, subprotocols: Sequence[str], limit_bytes: int
    ) -> EngineSocket:
        """Open a WebSocket, once. Raises NotTaken, BackendTimeout, BackendFailed for any answer but 101."""
        hop = self._hop(backend, request)
        outgoing = headers.outgoing(request.headers, hop, keep_authorization=self._keeps_keys(backend))
        kept = [pair for pair in outgoing.headers if not pair[0].lower().startswith("sec-websocket-")]
        try:
            async with asyncio.timeout(self._settings.response_timeout_s):
                socket = await self._opened().ws_connect(
                    self._url(backend, request),
                    headers=CIMultiDict(kept),
                    protocols=subprotocols,
                    autoclose=False,
                    autoping=False,
                    compress=0,
                    max_msg_size=limit_bytes,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                    ssl=self._contexts.of(backend.settings) if backend.root.startswith("https:") else True,
                )
        except TimeoutError as error:
            raise BackendTimeout(detail="no WebSocket in time") from error
        except aiohttp.WSServerHandshakeError as error:
            raise BackendFailed(f"The backend opened no WebSocket: it answered with status {error.status}.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise NotTaken("connect", told(error)) from error
        return EngineSocket(socket)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        return self._session

    def _url(self, backend: Backend, request: UpstreamRequest) -> URL:
        """Path and query as received: nothing is decoded, encoded or normalised on the way."""
        if request.query:
            return URL(f"{backend.root}{request.path}?{request.query}", encoded=True)
        key = (backend.root, request.path)
        url = self._urls.get(key)
        if url is None:
            url = URL(backend.root + request.path, encoded=True)
            if len(self._urls) >= _URLS_LIMIT:  # backends come and go, and what they were called for with them
                self._urls.clear()
            self._urls[key] = url
        return url

    def _hop(self, backend: Backend, request: UpstreamRequest) -> tuple[tuple[str, str], ...]:
        key = backend.settings.api_key
        hop = () if key is None else (("Authorization", f"Bearer {key}"),)
        # vLLM reports on the answers of completions that are no streams, and ignores the header elsewhere.
        if request.path.endswith("/completions") and backend.asks_report(asyncio.get_running_loop().time()):
            return (*hop, headers.ASK_FOR_REPORT)
        return hop

    def _keeps_keys(self, backend: Backend) -> bool:
        return self._settings.forward_authorization and backend.settings.api_key is None


def _abandon(upload: Upload | None) -> None:
    if upload is not None:
        upload.abandon()


def _verdict(error: Exception, upload: Upload | None, *, timed_out: bool) -> NotTaken | BackendLost | BackendTimeout:
    """What a failure before the response's head proves."""
    detail = told(error)
    unconnected = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    if unconnected or (upload is not None and not upload.started):
        return NotTaken("connect", detail)
    if upload is not None and not upload.sent:
        return NotTaken("body_not_sent", detail)
    if timed_out:
        return BackendTimeout(detail="no response head in time")
    return BackendLost(detail=f"before the response: {detail}")


class _Broken(aiohttp.ClientError):
    """A lost connection in a type that aiohttp does not answer by sending the request again."""


async def _no_resend(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Broken from error


_NO_RESEND = (_no_resend,)
