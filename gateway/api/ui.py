"""The page ``/ui`` on the admin port: its files, and the endpoints below ``/ui/api/`` that fill it.

Decided here: paths, limits of what is read, headers that keep the page to itself (a strict CSP, nothing of another
host), who is let in, how many wait. Not decided here: any answer: what is computed is computed on the data loop or by
its workers (``ask_*``), in a bounded line; ``live`` reads snapshots. The files hold nothing secret and need no token;
everything below ``/ui/api/`` does where one is configured. Requests that another site's page makes are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from gateway.api.desk import Busy, Desk
from gateway.errors import BodyTooLarge, GatewayError, InvalidRequest
from gateway.playground import Choice
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.types import Size, TenantId

FOLDER = Path(__file__).resolve().parent.parent / "ui"
PICTURE_LIMIT_BYTES = 32 << 20
TEXT_LIMIT_BYTES = 64 << 10
# Pictures take workers from requests, and memory; the rest are small questions of people who click.
PICTURE_PLACES = 4
QUESTION_PLACES = 16
WATCHER_PLACES = 16
LIVE_PERIOD_S = 1.0
# Who neither sends nor takes anything for so long gives its place to others; a whole body may take longer.
SILENCE_S = 15.0
UPLOAD_S = 120.0

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class UiView:
    """What the page may ask. ``live`` is a thread-safe read (exchanges after this number); the others are awaited."""

    ask_choices: Callable[[], Awaitable[dict[str, object]]]
    ask_sizes: Callable[[list[Size], Choice], Awaitable[dict[str, object]]]
    ask_picture: Callable[[bytes, str, Choice], Awaitable[dict[str, object]]]
    ask_policy: Callable[[TenantId, str | None, str | None], Awaitable[dict[str, object]]]
    ask_check: Callable[[str], Awaitable[dict[str, object]]]
    live: Callable[[int], dict[str, object]]


class UiPages:
    """Routes of one admin server. ``authorise`` raises HTTPUnauthorized."""

    def __init__(self, view: UiView, authorise: Callable[[web.Request], None]) -> None:
        self._view = view
        self._authorise = authorise
        self._files = {path.name: _file(path) for path in FOLDER.iterdir() if path.suffix in _TYPES}
        self._pictures, self._questions = Desk(PICTURE_PLACES), Desk(QUESTION_PLACES)
        self._watchers = Desk(WATCHER_PLACES)
        self._leaving = asyncio.Event()

    def add_to(self, application: web.Application) -> None:
        """Add all routes. To be called on the admin loop."""
        add = application.router
        add.add_get("/ui", self._index)
        add.add_get("/ui/", self._index)
        add.add_get("/ui/{name}", self._file)
        add.add_get("/ui/api/door", self._door)
        add.add_get("/ui/api/choices", self._asking(self._questions, self._choices))
        add.add_post("/ui/api/sizes", self._asking(self._questions, self._sizes))
        add.add_post("/ui/api/picture", self._asking(self._pictures, self._picture))
        add.add_get("/ui/api/policy", self._asking(self._questions, self._policy))
        add.add_post("/ui/api/check", self._asking(self._questions, self._check))
        add.add_get("/ui/api/live", self._live)
        application.on_shutdown.append(self._leave)

    async def _leave(self, application: web.Application) -> None:  # noqa: ARG002  # aiohttp's signature
        self._leaving.set()

    async def _index(self, request: web.Request) -> web.Response:
        if request.path == "/ui":  # so that names in the page are below it
            raise web.HTTPFound("/ui/", headers=_HEADERS)
        return self._serve("index.html", request)

    async def _file(self, request: web.Request) -> web.Response:
        return self._serve(request.match_info["name"], request)

    def _serve(self, name: str, request: web.Request) -> web.Response:
        found = self._files.get(name)
        if found is None:
            raise web.HTTPNotFound(headers=_HEADERS)
        content, content_type, tag = found
        headers = {**_HEADERS, "Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, headers={**headers, "Content-Type": content_type})

    def _admit(self, request: web.Request) -> None:
        if request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
            raise web.HTTPForbidden(text="Another site's page may not ask this.\n", headers=_HEADERS)
        self._authorise(request)

    def _asking(
        self, desk: Desk, answer: Callable[[web.Request], Awaitable[dict[str, object]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            self._admit(request)
            try:
                with desk.place():
                    return _json(200, await answer(request))
            except Busy:
                told = {"code": "busy", "message": "The page has as much to do as it may. Try again in a moment."}
                return _json(503, {"error": told}, {"Retry-After": "1"})
            except GatewayError as error:
                parts = {"part": error.part, "rule": error.rule}
                return _json(error.status, {"error": {"code": error.code, "message": error.message, **parts}})

        return handle

    async def _door(self, request: web.Request) -> web.Response:
        """Whether who asks would be answered: a refusal here would be an error in every reader's console."""
        try:
            self._admit(request)
        except web.HTTPUnauthorized:
            return _json(200, {"open": False})
        return _json(200, {"open": True})

    async def _choices(self, request: web.Request) -> dict[str, object]:  # noqa: ARG002  # as the others
        return await self._view.ask_choices()

    async def _sizes(self, request: web.Request) -> dict[str, object]:
        asked = _object(await _read(request, TEXT_LIMIT_BYTES))
        sizes, models = asked.get("sizes"), asked.get("models")
        if not isinstance(models, list):
            raise InvalidRequest("models must be a list of names.", part="models")
        choice = _choice([str(name) for name in models], asked.get)
        return await self._view.ask_sizes([_size(each) for each in sizes] if isinstance(sizes, list) else [], choice)

    async def _picture(self, request: web.Request) -> dict[str, object]:
        choice = _choice(request.query.getall("model", []), request.query.get)
        picture = await _read(request, PICTURE_LIMIT_BYTES)
        return await self._view.ask_picture(picture, request.content_type, choice)

    async def _policy(self, request: web.Request) -> dict[str, object]:
        query = request.query
        tenant = TenantId(query.get("tenant") or DEFAULT_TENANT)
        return await self._view.ask_policy(tenant, query.get("task") or None, query.get("model") or None)

    async def _check(self, request: web.Request) -> dict[str, object]:
        try:
            text = (await _read(request, TEXT_LIMIT_BYTES)).decode()
        except UnicodeDecodeError:
            raise InvalidRequest("The policy is not UTF-8.") from None
        return await self._view.ask_check(text)

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """Events of one look each, until the reader or the server leaves."""
        self._admit(request)
        try:
            with self._watchers.place():
                return await self._tell(request)
        except Busy:
            told = {"code": "busy", "message": "As many pages watch as may. Close one of them."}
            return _json(503, {"error": told}, {"Retry-After": "10"})

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", **_HEADERS}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        after = 0
        try:
            while not self._leaving.is_set():
                look = self._view.live(after)
                sums = look["sums"]
                after = sums["requests"] if isinstance(sums, dict) else after
                async with asyncio.timeout(SILENCE_S):
                    await response.write(f"data: {json.dumps(look)}\n\n".encode())
                try:
                    await asyncio.wait_for(self._leaving.wait(), LIVE_PERIOD_S)
                except TimeoutError:
                    continue
            await response.write_eof()
        except TimeoutError:  # the reader takes nothing
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:  # the reader left
            pass
        return response


def _file(path: Path) -> tuple[bytes, str, str]:
    content = path.read_bytes()
    return content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"'


def _json(status: int, told: object, headers: dict[str, str] | None = None) -> web.Response:
    every = {**_HEADERS, "Cache-Control": "no-store", **(headers or {})}
    return web.Response(status=status, body=json.dumps(told).encode(), content_type="application/json", headers=every)


async def _read(request: web.Request, limit_bytes: int) -> bytes:
    """Raises BodyTooLarge as soon as that is known, InvalidRequest for a body that does not come to its end."""
    if (request.content_length or 0) > limit_bytes:
        raise BodyTooLarge(f"The page takes at most {limit_bytes:,} bytes here.")
    body = bytearray()
    try:
        async with asyncio.timeout(UPLOAD_S):
            while chunk := await asyncio.wait_for(request.content.readany(), SILENCE_S):
                body += chunk
                if len(body) > limit_bytes:
                    raise BodyTooLarge(f"The page takes at most {limit_bytes:,} bytes here.")
    except TimeoutError:
        raise InvalidRequest("The body did not come in time.") from None
    except (web.RequestPayloadError, ConnectionError):
        raise InvalidRequest("The body ended early, or is not packed as its headers say.") from None
    return bytes(body)


def _object(text: bytes) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidRequest("The body is no JSON object.")
    return found


def _size(text: object) -> Size:
    if isinstance(text, list) and len(text) == 2 and all(type(side) is int for side in text):
        return Size(*text)
    raise InvalidRequest("A size is a list of width and height in pixels.", part="sizes")


def _choice(models: list[str], get: Callable[[str], object]) -> Choice:
    def word(name: str) -> str | None:
        found = get(name)
        return str(found)[:256] if found else None

    return Choice(tuple(models), TenantId(word("tenant") or DEFAULT_TENANT), word("task"), word("detail"))
