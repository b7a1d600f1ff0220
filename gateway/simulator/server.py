"""The HTTP process: middleware in the order record, fault, key, error; start, run until a signal, end.

Connections are kept open for the engine's five idle seconds only, bodies have no practical limit, coded bodies are
not decoded, and a client that leaves cancels its request: all as the real servers do.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Sequence
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from gateway.simulator.core import Core
from gateway.simulator.fields import Json, JsonObject
from gateway.simulator.record import FaultKind, Outcome
from gateway.simulator.refusal import EngineLost, QueueFull, Refusal
from gateway.simulator.settings import EngineKind, SigtermMode, SimulatorSettings
from gateway.simulator.sglang_routes import SglangContract
from gateway.simulator.vllm_routes import VllmContract
from gateway.simulator.web import CORE, FAULT, RECORD, DetailError, json_answer

BODY_LIMIT_BYTES = 1 << 30
_CLOSING_S = 1.0
# What ordered faults strike; a gateway's own probes and token counts use none up.
_GENERATING = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/generate"})
_JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_RUBBISH = {
    FaultKind.NOT_HTTP: b"\x16\x03\x01 this is no HTTP\r\n\r\n",
    FaultKind.HALF_HEAD: b"HTTP/1.1 200 OK\r\nContent-Ty",
    FaultKind.SHORT_BODY: _JSON_HEAD + b'Content-Length: 1000\r\n\r\n{"id":',
    FaultKind.BROKEN_CHUNK: _JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
}


class Contract(Protocol):
    """What an engine's contract brings: its routes, its envelopes, which paths a key guards."""

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Every route of the engine, its administration included."""
        ...

    def envelope(self, path: str, refusal: Refusal) -> JsonObject:
        """The body of a refusal on `path`."""
        ...

    def queue_full(self) -> Refusal:
        """How the engine says that its queue is full."""
        ...

    def is_guarded(self, path: str) -> bool:
        """Whether `path` needs the API key when one is set."""
        ...


class RunningSimulator:
    """A started simulator. `url` has the port that was really bound; `core` lets a test in the same process look in."""

    def __init__(self, url: str, core: Core, runner: web.AppRunner) -> None:
        self.url = url
        self.core = core
        self._runner = runner

    async def shut_down(self, second_signal: asyncio.Event) -> None:
        """End as the engine does on SIGTERM: drain for the grace time, or cut, or hang until a second signal."""
        core, settings = self.core, self.core.settings
        if settings.shutdown_timeout_s > 0:
            core.is_draining = True
            await _within(core.idle.wait(), settings.shutdown_timeout_s)
        else:
            for site in list(self._runner.sites):
                await site.stop()
            if settings.sigterm is SigtermMode.HANG and core.in_flight:
                core.engine.hang()
                await second_signal.wait()
        core.engine.lose()
        await _within(core.idle.wait(), _CLOSING_S)
        await self.close()

    async def close(self) -> None:
        """Stop listening, cancel what still runs, free threads and files."""
        await self._runner.cleanup()
        self.core.close()


async def start(settings: SimulatorSettings) -> RunningSimulator:
    """Start listening in the running loop. Raises OSError when the address is taken."""
    core = Core(settings)
    runner = web.AppRunner(
        build_app(core),
        handler_cancellation=True,
        keepalive_timeout=settings.keepalive_timeout_s,
        auto_decompress=False,
        access_log=None,
        shutdown_timeout=_CLOSING_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
        if settings.unix_socket is not None:
            await web.UnixSite(runner, settings.unix_socket).start()
    except OSError:
        await runner.cleanup()
        core.close()
        raise
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return RunningSimulator(f"http://{host}:{runner.addresses[0][1]}", core, runner)


def serve(settings: SimulatorSettings) -> None:
    """Run until SIGTERM or SIGINT. One JSON line on standard output says when it is ready and where."""
    asyncio.run(_serve(settings))


async def _serve(settings: SimulatorSettings) -> None:
    running = await start(settings)
    first, second = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (second if first.is_set() else first).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    ready = {"url": running.url, "engine": settings.engine.value, "model": settings.served_model_name}
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    await first.wait()
    ending = asyncio.create_task(running.shut_down(second))
    await asyncio.wait({ending, asyncio.create_task(second.wait())}, return_when=asyncio.FIRST_COMPLETED)
    # A second signal ends a drain at once; what hangs is cancelled with the loop.
    if ending.done():
        ending.result()


def build_app(core: Core) -> web.Application:
    """The application: the contract's routes, and the /sim routes when they are switched on."""
    contract = contract_of(core.settings.engine)
    app = web.Application(client_max_size=BODY_LIMIT_BYTES, middlewares=[_observe(core), _envelopes(core, contract)])
    app[CORE] = core
    app.add_routes(contract.routes())
    if core.settings.record_api:
        app.add_routes(
            [
                web.get("/sim/requests", _list_requests),
                web.delete("/sim/requests", _forget_requests),
                web.post("/sim/faults", _order_faults),
                web.get("/sim/state", _state),
            ]
        )
    return app


def contract_of(engine: EngineKind) -> Contract:
    """The contract that an engine speaks."""
    return SglangContract() if engine is EngineKind.SGLANG else VllmContract()


def _observe(core: Core) -> Middleware:
    @web.middleware
    async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Keep a record of every POST and PUT to the engine, and count it as in flight."""
        if request.method not in {"POST", "PUT"} or request.path.startswith("/sim/"):
            return await handler(request)
        record = core.recorder.begin(request.method, request.path_qs, list(request.headers.items()))
        request[RECORD] = record
        core.in_flight += 1
        record.in_flight = core.in_flight
        core.idle.clear()
        try:
            response = await handler(request)
            record.status = response.status
            if record.outcome is Outcome.RUNNING:
                record.outcome = Outcome.COMPLETED if response.status < 400 else Outcome.REFUSED
            return response
        except BaseException:
            if record.outcome is Outcome.RUNNING:
                record.outcome = Outcome.ABORTED
                core.tally.aborted_requests += 1
            raise
        finally:
            core.in_flight -= 1
            if core.in_flight == 0:
                core.idle.set()
            core.recorder.end(record)

    return observe


def _envelopes(core: Core, contract: Contract) -> Middleware:
    @web.middleware
    async def envelopes(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check the key, act out faults that come before a status, and turn every failure into the engine's answer."""
        headers = {}
        if core.settings.request_id_headers and "X-Request-Id" in request.headers:
            headers["X-Request-Id"] = request.headers["X-Request-Id"]
        try:
            if not _has_key(core, contract, request):
                return json_answer({"error": "Unauthorized"}, status=401)
            response = await _strike_early(core, request) or await handler(request)
            if not response.prepared:
                response.headers.update(headers)
            return response
        except Refusal as refusal:
            answer = refusal
        except QueueFull:
            answer = contract.queue_full()
        except EngineLost as lost:
            answer = Refusal(500, str(lost), "InternalServerError")
        except DetailError as error:
            return json_answer({"detail": error.detail}, status=error.status)
        except web.HTTPException as error:
            return json_answer({"detail": error.reason}, status=error.status)
        return json_answer(contract.envelope(request.path, answer), status=answer.status, headers=headers)

    return envelopes


def _has_key(core: Core, contract: Contract, request: web.Request) -> bool:
    key = core.settings.api_key
    if key is None or not contract.is_guarded(request.path):
        return True
    return request.headers.get("Authorization", "") == f"Bearer {key}"


async def _strike_early(core: Core, request: web.Request) -> web.Response | None:
    """Act out a fault that comes before the status; the answer when nothing else is to happen."""
    fault = core.faults.take() if request.path in _GENERATING else None
    if fault is None:
        return None
    request[FAULT] = fault
    match fault.kind:
        case FaultKind.STATUS:
            # The body is read first, as a server behind a framework does.
            await request.read()
            request[RECORD].outcome = Outcome.FAULTED
            raise Refusal(fault.status, f"Simulated fault {fault.status}.", "InternalServerError")
        case FaultKind.RESET_BEFORE_STATUS:
            request[RECORD].outcome = Outcome.FAULTED
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        case FaultKind.HANG_BEFORE_STATUS:
            request[RECORD].outcome = Outcome.FAULTED
            await asyncio.get_running_loop().create_future()
        case FaultKind.NOT_HTTP | FaultKind.HALF_HEAD | FaultKind.SHORT_BODY | FaultKind.BROKEN_CHUNK:
            await request.read()
            request[RECORD].outcome = Outcome.FAULTED
            if request.transport is not None and isinstance(request.transport, asyncio.WriteTransport):
                request.transport.write(_RUBBISH[fault.kind])
                request.transport.close()
            return web.Response(status=500)
        case FaultKind.DELAY:
            await asyncio.sleep(fault.delay_s)
        case _:
            pass
    return None


async def _list_requests(request: web.Request) -> web.Response:
    core = request.app[CORE]
    return json_answer({"requests": core.recorder.listing(), "admin_calls": list[Json](core.admin_calls)})


async def _forget_requests(request: web.Request) -> web.Response:
    core = request.app[CORE]
    core.recorder.clear()
    core.admin_calls.clear()
    return json_answer({})


async def _order_faults(request: web.Request) -> web.Response:
    request.app[CORE].faults.order(await request.json())
    return json_answer({})


async def _state(request: web.Request) -> web.Response:
    core = request.app[CORE]
    load = core.engine.load()
    state: JsonObject = {
        "in_flight": core.in_flight,
        "running": load.running,
        "waiting": load.waiting,
        "kv_usage": load.kv_usage,
        "used_tokens": load.used_tokens,
        "aborted": core.tally.aborted_requests,
        "pictures_met": core.loader.queries - core.loader.hits,
        "pictures_encoded": core.tally.encoder_queries - core.tally.encoder_hits,
        "picture_bytes": core.loader.received_bytes,
    }
    return json_answer(state)


async def _within(waiting: Awaitable[object], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return
