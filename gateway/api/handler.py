"""From an HTTP request to the right journey and back. The only place that looks at the path.

Decided here: the answer to what no journey handles (unknown paths, wrong methods, /v1/models, /health), and which
journey takes the rest. Not decided here: the order of stages (``journey``), errors' words, what is relayed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from gateway.api.client import HttpClient
from gateway.api.cors import Cors
from gateway.api.extra_routes import ExtraRoutes
from gateway.api.forwarding import Forwarding, Hop
from gateway.api.models import wants_anthropic
from gateway.api.pages import is_of_host
from gateway.api.relayed import is_text
from gateway.api.routes import Route, RouteKind, find_route
from gateway.api.uploads import GRACE_S, Uploads
from gateway.api.websocket import WebSocketClient
from gateway.dialects import DIALECTS, Dialect, dialect_of
from gateway.errors import GatewayError, Malformed, MethodNotAllowed, NotPermitted, RouteNotFound
from gateway.explain import PATH_HEADER, asked_path, unread
from gateway.media.shm import Slab
from gateway.record import RequestHead
from gateway.telemetry.trace import trace_id
from gateway.types import HeaderList, RequestId
from gateway.types.paths import Lane

# What takes another path's body; which one, the request says.
_OF_A_PATH = (RouteKind.ESTIMATE, RouteKind.PREPARE)
_SAFE_REQUEST_ID = re.compile(r"^[\x21-\x7e]{1,128}$")


# Engines name responses after request ids, and who can name a response can fetch it: 128 bits nobody can guess, of
# which the kernel is asked for many at a time.
_ID_BYTES, _IDS_AT_ONCE = 16, 256


def _random_ids() -> Iterator[str]:
    digits = 2 * _ID_BYTES
    while True:
        batch = os.urandom(_ID_BYTES * _IDS_AT_ONCE).hex()
        for start in range(0, len(batch), digits):
            yield batch[start : start + digits]


next_request_id = _random_ids().__next__


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


@dataclass(frozen=True, slots=True)
class Edge:
    """What the HTTP edge needs of the application; one value per process, its callables read the current snapshot."""

    travel: Callable[[HttpClient, Dialect], Awaitable[None]]
    ferry: Callable[[HttpClient, str, Lane], Awaitable[None]]
    estimate: Callable[[HttpClient, Dialect], Awaitable[None]]
    prepare: Callable[[HttpClient, Dialect], Awaitable[None]]
    refuse: Callable[[HttpClient, str, GatewayError], Awaitable[None]]
    list_models: Callable[[RequestHead], bytes]
    is_ready: Callable[[], bool]
    is_draining: Callable[[], bool]
    slab: Slab
    body_silence_s: float
    upload_grace_s: float = GRACE_S
    forwarding: Forwarding | None = None
    cors: Cors | None = None
    extra_routes: ExtraRoutes | None = None
    talk: Callable[[WebSocketClient, str, Lane], Awaitable[None]] | None = None
    leaving: Callable[[], Awaitable[None]] = _never
    trace: Callable[[RequestHead], RequestHead] | None = None


def request_head(request: web.BaseRequest) -> RequestHead:
    """The head as the journey sees it. A client's request id is kept if it is printable and at most 128 characters."""
    headers = request.headers
    given = headers.get("x-request-id", "")
    request_id = given if _SAFE_REQUEST_ID.match(given) else next_request_id()
    target = request.raw_path
    if not target.startswith("/"):  # absolute form (RFC 9112 §3.2.2), or an asterisk
        target = request.rel_url.raw_path_qs
    path, _, query = target.partition("?")
    traceparent = headers.get("traceparent")
    return RequestHead(
        method=request.method,
        path=path,
        query=query,
        headers=tuple(headers.items()),
        content_length=request.content_length,
        request_id=RequestId(request_id),
        trace_id=None if traceparent is None else trace_id(traceparent),
    )


class DataHandler:
    """The data port's handler, for aiohttp's low-level server (no router, no middleware: this is the hot path)."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._uploads = Uploads(edge.slab, edge.upload_grace_s)
        self._connections: set[asyncio.Task[object]] = set()  # with a request in hand
        self._dresses = edge.cors is not None or (edge.forwarding is not None and edge.forwarding.via is not None)

    def _dress(self, request: web.BaseRequest) -> Callable[[HeaderList], HeaderList]:
        """What configuration adds to an answer's headers."""
        cors, forwarding, origin = self._edge.cors, self._edge.forwarding, request.headers.get("Origin")

        def dress(headers: HeaderList) -> HeaderList:
            passed = headers if forwarding is None else [*headers, *forwarding.response_headers()]
            return passed if cors is None else cors.answered(origin, passed)

        return dress

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        head = request_head(request)
        if self._edge.trace is not None:
            head = self._edge.trace(head)
        if self._edge.forwarding is not None:
            hop = Hop(request.remote or "", request.scheme, request.headers.get("Host", ""))
            head = replace(head, headers=tuple(self._edge.forwarding.request_headers(head.headers, hop)))
        route = find_route(head.path)
        if route is None and self._edge.extra_routes is not None:
            route = self._edge.extra_routes.find(head.path)
        dialect = _dialect_for(route, head)
        if route is not None and route.kind in _OF_A_PATH and head.method in route.methods:
            head = replace(head, path=asked_path(head.query, head.header(PATH_HEADER)))
            dialect = dialect_of(head.path) or dialect
        edge = self._edge
        client = (WebSocketClient if route is not None and route.kind is RouteKind.WEBSOCKET else HttpClient)(
            request,
            head,
            dialect,
            self._uploads,
            body_silence_s=edge.body_silence_s,
            is_closing=edge.is_draining,
            dress=self._dress(request) if self._dresses else None,
        )
        connection = asyncio.current_task()
        assert connection is not None, "aiohttp calls from a task"
        self._connections.add(connection)
        try:
            await self._answer(client, route, dialect)
        finally:
            self._connections.discard(connection)
            client.close()
        assert client.response is not None, "every branch answers"
        return client.response

    async def cut(self, within_s: float) -> None:
        """End what is still going on, each exchange with an error of its own, as far as clients take that in time."""
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections, timeout=within_s)

    async def _answer(self, client: HttpClient, route: Route | None, dialect: Dialect) -> None:
        edge, head = self._edge, client.head
        if not is_text([value for _, value in head.headers]):
            error = Malformed(
                "A header's value is not UTF-8, and would not reach the backend as it is.", part="headers"
            )
            await edge.refuse(client, "unknown", error)
        elif route is None:
            await edge.refuse(client, "unknown", RouteNotFound(f"The gateway has no path {head.path[:128]!r}."))
        elif head.method == "OPTIONS" and edge.cors is not None:
            await self._preflight(client, edge.cors, route)
        elif head.method not in route.methods:
            wrong = MethodNotAllowed(f"{head.path} takes {', '.join(route.methods)}.")
            wrong.allowed = tuple(route.methods)
            await edge.refuse(client, route.name, wrong)
        elif route.kind is RouteKind.CHAT:
            await edge.travel(client, dialect)
        elif route.kind in _OF_A_PATH:
            if dialect_of(head.path) is None:
                await edge.refuse(client, route.name, unread(head.path))
            else:
                await (edge.estimate if route.kind is RouteKind.ESTIMATE else edge.prepare)(client, dialect)
        elif route.kind is RouteKind.PASS_THROUGH:
            await edge.ferry(client, route.name, route.lane)
        elif route.kind is RouteKind.WEBSOCKET:
            await self._talk(client, route)
        elif route.kind is RouteKind.MODELS:
            await self._models(client)
        else:
            ready = edge.is_ready() and not edge.is_draining()
            await _respond(client, 200 if ready else 503, (), b"")

    async def _talk(self, client: HttpClient, route: Route) -> None:
        assert isinstance(client, WebSocketClient), "its route says so"
        try:
            client.check()
        except GatewayError as wrong:
            await self._edge.refuse(client, route.name, wrong)
            return
        # No CORS guards a WebSocket: the server itself has to look where its page came from (RFC 6455 §10.2).
        origin = client.head.header("origin")
        if origin is not None and not self._may_talk(origin, client.head.header("host") or ""):
            refused = NotPermitted("Pages of this origin may not open a conversation.", rule="server.cors_origins")
            await self._edge.refuse(client, route.name, refused)
            return
        assert self._edge.talk is not None, "whoever adds routes lets them talk"
        client.leaving = self._edge.leaving
        await self._edge.talk(client, route.name, route.lane)

    def _may_talk(self, origin: str, host: str) -> bool:
        return is_of_host(origin, host) or (self._edge.cors is not None and self._edge.cors.allows(origin))

    async def _preflight(self, client: HttpClient, cors: Cors, route: Route) -> None:
        told = cors.preflight(client.head.headers, route.methods)
        headers = (("Allow", ", ".join((*route.methods, "OPTIONS"))),) if told is None else told
        client.speak_plainly()  # what a preflight is told is complete
        await _respond(client, 204, headers, b"")

    async def _models(self, client: HttpClient) -> None:
        try:
            body = self._edge.list_models(client.head)
        except GatewayError as error:
            await self._edge.refuse(client, "models", error)
            return
        headers = (("Content-Type", "application/json"), ("x-request-id", client.head.request_id))
        await _respond(client, 200, headers, body)


def _dialect_for(route: Route | None, head: RequestHead) -> Dialect:
    """Whose envelope errors have: the path's, OpenAI's elsewhere, Anthropic's where its SDK asks for models."""
    if route is not None and route.dialect is not None:
        return route.dialect
    is_anthropic = route is not None and route.kind is RouteKind.MODELS and wants_anthropic(head)
    return (dialect_of("/v1/messages") if is_anthropic else None) or DIALECTS[0]


async def _respond(client: HttpClient, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # the client left: nobody is there to be told
        await client.start(status, headers, len(body))
        if body and client.head.method != "HEAD":
            await client.write(body)
        await client.finish()
