"""The admin port: its own thread, its own loop, reading snapshots. It answers while the data loop is busy or stuck.

Decided here: the admin paths and what they answer. Not decided here: what is live, ready, or measured (``app`` gives
callables). Live = the data loop beat within 30 s; ready = not draining, configuration loaded, a worker alive.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.api.pages import is_foreign_page, may_be_rebound
from gateway.api.ui import UiPages, UiView
from gateway.explain import PATH_HEADER, asked_path

LIVE_BEAT_S = 30.0


@dataclass(frozen=True, slots=True)
class AdminView:
    """What the admin port may ask. All callables are cheap, thread-safe reads, except those named ``ask_*``.

    ``render_metrics`` takes the header Accept and gives the page with its content type.

    ``notes`` are what ``/readyz?verbose`` tells beside its checks; they make nothing unready.

    ``ui`` is what the page ``/ui`` asks; without it there is no page.

    ``ask_reload`` and ``ask_explain`` run on the data loop and are awaited from the admin loop.
    """

    beat_age_s: Callable[[], float]
    readiness: Callable[[], dict[str, bool]]
    render_metrics: Callable[[str], tuple[bytes, str]]
    config: Callable[[], dict[str, object]]
    drain: Callable[[], object]
    ask_reload: Callable[[], Awaitable[list[str]]]
    ask_explain: Callable[[bytes, dict[str, str]], Awaitable[dict[str, object]]]
    token: str | None = None
    notes: Callable[[], list[str]] = list
    ui: UiView | None = None


class AdminServer:
    """Start with ``start`` (returns the port), stop with ``stop``; both may be called from any thread."""

    def __init__(self, view: AdminView, *, host: str, port: int) -> None:
        self._view = view
        self._host = host
        self._port = port
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="admin", daemon=True)

    def start(self) -> int:
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._port

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=2)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  # handed to the thread that called start
            self._error = error
            self._ready.set()

    async def _serve(self) -> None:
        application = web.Application(client_max_size=64 << 20)
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/-/config", self._config)
        application.router.add_post("/-/reload", self._reload)
        application.router.add_post("/-/drain", self._drain)
        application.router.add_post("/-/explain", self._explain)
        if self._view.ui is not None:
            UiPages(self._view.ui, self._authorise).add_to(application)
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        await site.start()
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._port = int(runner.addresses[0][1])
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:
        age_s = self._view.beat_age_s()
        is_live = age_s < LIVE_BEAT_S
        return _plain(ok=is_live, checks={"loop": is_live}, verbose="verbose" in request.query)

    async def _readyz(self, request: web.Request) -> web.Response:
        checks = self._view.readiness()
        ready = all(checks.values())
        verbose = "verbose" in request.query
        return _plain(ok=ready, checks=checks, verbose=verbose, notes=self._view.notes() if verbose else ())

    async def _metrics(self, request: web.Request) -> web.Response:
        body, content_type = self._view.render_metrics(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _config(self, request: web.Request) -> web.Response:
        self._authorise(request)
        return web.json_response(self._view.config())

    async def _reload(self, request: web.Request) -> web.Response:
        self._authorise(request)
        problems = await self._view.ask_reload()
        return web.json_response({"reloaded": not problems, "problems": problems}, status=200 if not problems else 422)

    async def _drain(self, request: web.Request) -> web.Response:
        self._authorise(request)
        self._view.drain()
        return web.json_response({"draining": True}, status=202)

    async def _explain(self, request: web.Request) -> web.Response:
        self._authorise(request)
        try:
            body = await request.read()
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(text="The body is not packed as its headers say.\n") from None
        headers = {name.lower(): value for name, value in request.headers.items()}
        # As a header it also reaches whichever process of several explains.
        headers[PATH_HEADER] = asked_path(request.rel_url.raw_query_string, headers.get(PATH_HEADER))
        return web.json_response(await self._view.ask_explain(body, headers))

    def _authorise(self, request: web.Request) -> None:
        origin, host = request.headers.get("Origin"), request.host
        if is_foreign_page(origin, request.headers.get("Sec-Fetch-Site"), host):
            raise web.HTTPForbidden(text="Another site's page may not ask this.\n")
        if self._view.token is None:
            if may_be_rebound(origin, host):
                raise web.HTTPForbidden(text="A page under this name needs the admin token (VLMGW_ADMIN_TOKEN).\n")
            return
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self._view.token}".encode()):
            raise web.HTTPUnauthorized(
                text=json.dumps({"error": {"message": "The admin token is required.", "code": "unauthenticated"}}),
                content_type="application/json",
            )


def _plain(*, ok: bool, checks: dict[str, bool], verbose: bool, notes: Sequence[str] = ()) -> web.Response:
    lines = [*(f"[{'+' if passed else '-'}]{name}" for name, passed in checks.items()), *notes] if verbose else []
    return web.Response(status=200 if ok else 503, text="\n".join([*lines, "ok" if ok else "not ok"]) + "\n")
