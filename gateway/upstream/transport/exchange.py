"""One request, one response, one verdict: what goes over a connection, and what a failure proves.

Connections are aiohttp's (name look-up, TLS, pool, parser of responses). What it would build around each request
(session, request, response, a task for the body, two timers) is not needed here and cost more than all of that.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
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
from gateway.upstream.transport.head import Site, send_bodiless, written_head
from gateway.upstream.transport.looking import look_ahead
from gateway.upstream.transport.patience import Patience
from gateway.upstream.transport.response import EngineResponse
from gateway.upstream.transport.socket import CLOSE_TIMEOUT_S, NOT_CONNECTED, EngineSocket, conversations
from gateway.upstream.transport.telling import told
from gateway.upstream.transport.upload import Pieces, Relayed, Upload
from gateway.upstream.transport.wires import Wire

_SITES_LIMIT = 512
# Long header lines from an engine are legitimate (load reports, trace state).
_HEADER_LIMIT_BYTES = 64 * 1024
# Below it is what cannot be the answer to a request: 101 unasked, and what is no status (RFC 9110 §15).
_LEAST_STATUS = 200
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_BROKEN = (aiohttp.ClientError, HttpProcessingError, OSError)


class Transport:
    """Sends requests to backends. ``open`` before the first one, ``close`` after the last."""

    def __init__(self, settings: UpstreamSettings, contexts: TlsContexts | None = None) -> None:
        self._settings = settings
        self._contexts = contexts or TlsContexts()
        self._session: aiohttp.ClientSession | None = None
        self._connector: FreshConnector | None = None
        self._connecting = aiohttp.ClientTimeout(total=None, connect=settings.connect_timeout_s)
        self._sites: dict[tuple[object, ...], Site] = {}
        self._sockets: dict[str, str] = {}
        self.admit(settings.backends)

    def admit(self, backends: Iterable[BackendSettings]) -> None:
        """Requests may go to these from now on."""
        for each in backends:
            if each.unix_path is not None:
                self._sockets[urlsplit(each.root).netloc] = each.unix_path

    async def open(self) -> None:
        self._connector = FreshConnector(self._settings.keepalive_s, self._sockets)
        self._session = conversations(self._connector, self._connecting, _HEADER_LIMIT_BYTES)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def forward(self, backend: Backend, request: UpstreamRequest) -> EngineResponse:
        """Send a body that lies in memory, once. Raises NotTaken, BackendLost, BackendTimeout."""
        upload = Pieces(request.body, request.body_bytes) if request.body else None
        return await self._exchange(backend, request, upload)

    async def stream(
        self, backend: Backend, request: UpstreamRequest, client: Client, limit_bytes: int
    ) -> EngineResponse:
        """Send a body while it is read from the client, once.

        Raises NotTaken (nothing was read from the client yet), BackendUnreachable (something was, so it cannot go
        elsewhere), BackendLost, BackendTimeout, BodyTooLarge and whatever reading from the client raises.
        """
        upload = None
        if client.head.content_length != 0 and (request.method not in _BODILESS or client.head.content_length):
            upload = Relayed(client, limit_bytes)
        try:
            return await self._exchange(backend, request, upload)
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

    async def _exchange(self, backend: Backend, request: UpstreamRequest, upload: Upload | None) -> EngineResponse:
        received_headers, hop = request.headers, self._hop(backend, request)
        lent = backend.settings.affinity_header
        if lent is not None:
            received_headers, hop = headers.lend(received_headers, hop, lent, request.affinity_key)
        outgoing = headers.outgoing(received_headers, hop, keep_authorization=self._keeps_keys(backend))
        site = self._site(backend)
        head = written_head(request, site, outgoing.headers, upload)
        wire = Wire(backend.wires, upload)
        try:
            connection = await self._connect(site)
            try:
                message, content = await self._converse(connection, request, head, upload)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            wire.end()
            if upload is not None:
                upload.abandon()
            raise
        protocol = connection.protocol
        assert protocol is not None
        wire.answered(protocol, content)
        response = EngineResponse(connection, message, content, upload, wire, outgoing.stripped)
        if response.status < _LEAST_STATUS:
            response.close()
            raise BackendLost(detail=f"an answer of status {response.status}")
        response.limit_silence(self._settings.idle_timeout_s)
        try:
            await look_ahead(backend.engine, response)
        except NotTaken:
            raise
        except BaseException:
            response.close()
            raise
        return response

    async def _connect(self, site: Site) -> Connection:
        """A quiet connection. Raises NotTaken: nothing was sent."""
        try:
            return await self._opened().connect(site.request, [], self._connecting)
        except _BROKEN as error:
            raise NotTaken("connect", told(error)) from error

    async def _converse(
        self, connection: Connection, request: UpstreamRequest, head: bytes, upload: Upload | None
    ) -> tuple[RawResponseMessage, StreamReader]:
        """Send the request and wait for the final head of its answer. Raises NotTaken, BackendLost, BackendTimeout."""
        protocol = connection.protocol
        assert protocol is not None
        patience = Patience(protocol, self._settings.response_timeout_s)
        try:
            protocol.set_response_params(
                skip_payload=request.method == "HEAD",
                read_until_eof=True,
                auto_decompress=False,
                max_line_size=_HEADER_LIMIT_BYTES,
                max_field_size=_HEADER_LIMIT_BYTES,
            )
            if upload is not None:
                upload.begin(protocol, head, patience)
            else:
                send_bodiless(protocol, head)
                patience.begin()
            while True:
                message, content = await protocol.read()
                if message.code == 101 or not 100 <= message.code < 200:
                    break
        except _BROKEN as error:
            raise _verdict(error, upload, timed_out=patience.is_over) from error
        finally:
            patience.end()
        if upload is not None:
            upload.unwatch()
        return message, content

    async def open_socket(
        self, backend: Backend, request: UpstreamRequest, subprotocols: Sequence[str], limit_bytes: int
    ) -> EngineSocket:
        """Open a WebSocket, once. Raises NotTaken (nothing was sent), BackendTimeout, BackendFailed for any answer but
        101 and for none."""
        hop = self._hop(backend, request)
        outgoing = headers.outgoing(request.headers, hop, keep_authorization=self._keeps_keys(backend))
        kept = [pair for pair in outgoing.headers if not pair[0].lower().startswith("sec-websocket-")]
        try:
            async with asyncio.timeout(self._settings.response_timeout_s):
                socket = await self._conversations().ws_connect(
                    self._url(backend, request),
                    headers=CIMultiDict(kept),
                    protocols=subprotocols,
                    autoclose=False,
                    autoping=False,
                    compress=0,
                    max_msg_size=limit_bytes,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
                    ssl=self._contexts.of(backend.settings) if backend.root.startswith("https:") else True,
                    server_hostname=backend.settings.tls_server_name,
                )
        except NOT_CONNECTED as error:
            raise NotTaken("connect", told(error)) from error
        except TimeoutError as error:
            raise BackendTimeout(detail="no WebSocket in time") from error
        except aiohttp.WSServerHandshakeError as error:
            raise BackendFailed(f"The backend opened no WebSocket: it answered with status {error.status}.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise BackendLost(detail=f"before its WebSocket was open: {told(error)}") from error
        return EngineSocket(socket)

    def _opened(self) -> FreshConnector:
        if self._connector is None:
            raise RuntimeError("the transport is not open")
        return self._connector

    def _conversations(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        return self._session

    def _url(self, backend: Backend, request: UpstreamRequest) -> URL:
        """Path and query as received: nothing is decoded, encoded or normalised on the way."""
        query = f"?{request.query}" if request.query else ""
        return URL(f"{backend.root}{request.path}{query}", encoded=True)

    def _site(self, backend: Backend) -> Site:
        """Where a backend's connections lead, made once."""
        tls: ssl.SSLContext | bool = True
        if backend.root.startswith("https:"):
            tls = self._contexts.of(backend.settings)
        key = (backend.root, tls, backend.settings.tls_server_name)
        site = self._sites.get(key)
        if site is None:
            if len(self._sites) >= _SITES_LIMIT:  # backends come and go
                self._sites.clear()
            site = self._sites[key] = Site.of(backend.root, tls=tls, server_name=backend.settings.tls_server_name)
        return site

    def _hop(self, backend: Backend, request: UpstreamRequest) -> tuple[tuple[str, str], ...]:
        key = backend.settings.api_key
        hop = () if key is None else (("Authorization", f"Bearer {key}"),)
        # vLLM reports on the answers of completions that are no streams, and ignores the header elsewhere.
        if request.path.endswith("/completions") and backend.asks_report(asyncio.get_running_loop().time()):
            return (*hop, headers.ASK_FOR_REPORT)
        return hop

    def _keeps_keys(self, backend: Backend) -> bool:
        return self._settings.forward_authorization and backend.settings.api_key is None


def _verdict(error: Exception, upload: Upload | None, *, timed_out: bool) -> NotTaken | BackendLost | BackendTimeout:
    """What a failure before the response's head proves."""
    detail = told(error)
    if upload is not None and not upload.started:
        return NotTaken("connect", detail)
    if upload is not None and not upload.sent:
        return NotTaken("body_not_sent", detail)
    if timed_out:
        return BackendTimeout(detail="no response head in time")
    return BackendLost(detail=f"before the response: {detail}")
