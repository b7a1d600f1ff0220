"""The ``do`` steps: what the runner does to the gateway's processes, its store and its streams.

Decided here: one method a step, in an explicit table. A step or key that nobody knows raises BadScript.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.case_runner.behaviour import BadScript
from tests.case_runner.engine_answers import endless_stream, stream_of
from tests.case_runner.http_client import exchange, request_bytes
from tests.case_runner.observation import Exchange, Memory
from tests.case_runner.performance import Performance, gathered
from tests.case_runner.polling import until
from tests.case_runner.wire import listen
from tests.case_runner.worker_hunter import WorkerHunter

_BUSY_DEADLINE_S = 60.0
_IDLE_DEADLINE_S = 30.0
_SIGNAL_SETTLES_S = 0.1
_SIGNAL_DEADLINE_S = 30.0
_EXIT_DEADLINE_S = 60.0
_BASELINE_REQUESTS = 10
_ORPHANS_LEAVE_S = 30.0


class Operations:
    """The steps of one case, in their order."""

    def __init__(self, performance: Performance) -> None:
        self.play = performance
        self.seen = performance.seen
        self.gateway = performance.topology.gateway
        self._hunter: WorkerHunter | None = None
        self._under_way: list[asyncio.Task[Exchange]] = []
        self._streams: list[asyncio.Task[Exchange]] = []
        self._family = self.gateway.family

    async def run(self) -> None:
        """Every step; what is under way at the end is ended."""
        steps = self.play.case.steps
        if any(step.get("do") in {"kill_image_worker", "stop_image_worker", "arm", "kill_worker"} for step in steps):
            self._hunter = WorkerHunter(self._family)
            self._hunter.start()
        if any(step.get("do") == "store" for step in steps):
            await self._baseline()
        try:
            for number, step in enumerate(steps):
                await self._step(step, steps[number + 1] if number + 1 < len(steps) else {})
            await gathered(self._under_way)
        finally:
            for task in (*self._under_way, *self._streams):
                task.cancel()
            await asyncio.gather(*self._under_way, *self._streams, return_exceptions=True)
            if self._hunter is not None:
                self._hunter.stop()
                self.seen.worker_deaths = self._hunter.deaths
            self.seen.random_values |= self.play.names.used_random

    async def _step(self, step: dict[str, Any], following: dict[str, Any]) -> None:
        if "do" not in step:
            await self.play.plain_step(step)
            return
        entry = _STEPS.get(step["do"])
        if entry is None:
            raise BadScript(f"a step {step['do']!r}")
        act, keys = entry
        unknown = step.keys() - keys - {"do"}
        if unknown:
            raise BadScript(f"{step['do']} with {', '.join(sorted(unknown))}")
        if following.get("do") in {"kill_image_worker", "stop_image_worker"}:
            self._prepare_hunt(following)  # before the picture is on its way
        await act(self, step)

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _send(self, step: dict[str, Any]) -> None:
        times, width = int(step.get("times", 1)), int(step.get("concurrency", 1))
        vary = step.get("vary")
        is_armed = self.seen.armed_file and step.get("request", "request.json") == self.seen.armed_file
        if self._hunter is not None and self.seen.armed_file:
            (self._hunter.armed.set if is_armed else self._hunter.armed.clear)()
        if width > 1:
            await self._send_concurrently(step, times, width)
            return
        for _ in range(times):
            if is_armed:
                await self._until_idle()
            await self.play.send(step, role="send", vary=vary, alone=not self._under_way)
        if self._hunter is not None and is_armed:
            self._hunter.armed.clear()

    async def _send_concurrently(self, step: dict[str, Any], times: int, width: int) -> None:
        slots = asyncio.Semaphore(width)

        async def one() -> Exchange:
            async with slots:
                return await self.play.send(step, role="send", vary=step.get("vary"), alone=False)

        await gathered([asyncio.create_task(one()) for _ in range(times)])

    async def _baseline(self) -> None:
        for _ in range(_BASELINE_REQUESTS):
            made = await self.play.send({}, role="baseline", alone=False)
            self.seen.baseline_ms.append(made.response.took_ms)
        self.seen.exchanges.clear()

    async def _send_async(self, step: dict[str, Any]) -> None:
        for _ in range(int(step.get("times", 1))):
            self._under_way.append(asyncio.create_task(self.play.send(step, role="async", alone=False)))
        await asyncio.sleep(0)

    async def _hold(self, step: dict[str, Any]) -> None:
        backend = self.play.topology.backend
        count = int(step.get("times", step.get("streams", step.get("count", 1))))
        for _ in range(count):
            backend.overrides.append(endless_stream())
            await self._open_stream(step, "hold")

    async def _stream(self, step: dict[str, Any]) -> None:
        backend = self.play.topology.backend
        backend.overrides.append(stream_of(int(step["backend_events"]), step.get("every_ms", 0) / 1000))
        await self._open_stream(step, "stream")

    async def _open_stream(self, step: dict[str, Any], role: str) -> None:
        """Send, and go on when the first event is on its way or the request is over."""
        backend = self.play.topology.backend
        index = len(backend.calls)
        task = asyncio.create_task(self.play.send(step, role=role, alone=role == "stream"))
        self._streams.append(task)
        await until(lambda: task.done() or any(call.sent_body for call in backend.calls[index:]))

    async def _wait_stream(self, _: dict[str, Any]) -> None:
        await asyncio.gather(*self._streams)

    async def _get(self, step: dict[str, Any]) -> None:
        for _ in range(int(step.get("times", 1))):
            if step["path"] == "readiness":
                status: int | None = (await self.gateway.get_admin("/readyz"))[0]
            else:
                path = self.play.names.fill(step["path"])
                headers = {**self.play.topology.own_headers, **step.get("headers", {})}
                outgoing = request_bytes("GET", path, headers, b"", f"127.0.0.1:{self.gateway.port}")
                status = (await exchange(self.gateway.port, outgoing, deadline_s=30)).status
            self.seen.gets[step.get("as", step["path"])] = status

    # --- measurements -----------------------------------------------------------------------------------------------

    async def _scrape(self, step: dict[str, Any]) -> None:
        for _ in range(int(step.get("times", 1))):
            self.seen.scrapes.append((step.get("as", ""), await self.play.topology.scrape()))

    async def _rss(self, step: dict[str, Any]) -> None:
        await asyncio.sleep(0.3)  # what the last answer left is given back
        memory = await asyncio.to_thread(self._family.memory_bytes)
        self.seen.memory.append(Memory(step.get("as", ""), memory, self._family.open_files()))

    async def _processes(self, step: dict[str, Any]) -> None:
        # A zombie counts while the gateway lives, which should have waited for it; afterwards it is nobody's.
        living = self.gateway.exit_code is None
        self.seen.processes[step.get("as", "after")] = len(self._family.members(with_zombies=living))
        self.seen.port_free = _is_free(self.gateway.port)

    # --- the store --------------------------------------------------------------------------------------------------

    async def _store(self, step: dict[str, Any]) -> None:
        store = self.play.topology.store
        assert store is not None, "a case with store steps gets one"
        await store.set(step["state"])

    # --- processes --------------------------------------------------------------------------------------------------

    def _prepare_hunt(self, step: dict[str, Any]) -> None:
        hunter = self._hunter
        assert hunter is not None, "started with the case"
        if step.get("when", "busy") == "busy":
            stops = step["do"] == "stop_image_worker"
            hunter.number = signal.SIGSTOP if stops else _signal(step.get("signal", "KILL"))
            hunter.strikes_left = int(step.get("times", 1))
            hunter.armed.set()

    async def _strike_image_worker(self, step: dict[str, Any]) -> None:
        hunter = self._hunter
        assert hunter is not None, "started with the case"
        if step.get("when", "busy") != "busy":
            number = signal.SIGSTOP if step["do"] == "stop_image_worker" else _signal(step.get("signal", "KILL"))
            os.kill(self._family.image_workers()[0], number)
            self.seen.killed_at_s = time.monotonic()
            return
        if not hunter.armed.is_set():
            self._prepare_hunt(step)
        await until(lambda: not hunter.strikes_left, within_s=_BUSY_DEADLINE_S)
        hunter.armed.clear()
        if not hunter.struck_at_s:
            raise BadScript("no image worker was seen at work")
        self.seen.killed_at_s = hunter.struck_at_s[-1]

    async def _arm(self, step: dict[str, Any]) -> None:
        assert self._hunter is not None, "started with the case"
        self._hunter.number = signal.SIGKILL
        self._hunter.strikes_left = None
        self.seen.armed_file = step["kill_image_worker_on_hash_of"]

    async def _until_idle(self) -> None:
        hunter = self._hunter
        assert hunter is not None, "started with the case"
        await until(lambda: hunter.idle, within_s=_IDLE_DEADLINE_S)

    async def _kill_worker(self, step: dict[str, Any]) -> None:
        images = self._family.image_workers()
        others = [pid for pid in self._family.members(with_zombies=False) if pid not in {self.gateway.pid, *images}]
        os.kill((others or images)[0], _signal(step.get("signal", "KILL")))
        self.seen.killed_at_s = time.monotonic()

    async def _signal_main(self, step: dict[str, Any]) -> None:
        number = _signal(step.get("signal", "TERM" if step["do"] == "signal_main" else "KILL"))
        begins_a_drain = number is signal.SIGTERM and not self.seen.signals_at_s
        self.gateway.signal(number)
        self.seen.signals_at_s.append(time.monotonic())
        if begins_a_drain:
            await until(self._is_draining, within_s=_SIGNAL_DEADLINE_S)
        await asyncio.sleep(_SIGNAL_SETTLES_S)

    def _is_draining(self) -> bool:
        return self.gateway.exit_code is not None or '"draining"' in self.gateway.said()

    async def _wait_exit(self, _: dict[str, Any]) -> None:
        self.seen.exit_code = await self.gateway.wait_exit(_EXIT_DEADLINE_S * self.seen.time_scale)
        self.seen.exited_at_s = self.gateway.exited_at_s
        await until(lambda: not self._family.members(with_zombies=False), within_s=_ORPHANS_LEAVE_S)
        self.seen.processes["exit"] = len(self._family.members(with_zombies=False))

    async def _sleep(self, step: dict[str, Any]) -> None:
        await asyncio.sleep(step.get("ms", step.get("sleep_ms", 0)) / 1000)

    async def _start_gateway(self, _: dict[str, Any]) -> None:
        """Already done: the topology was started as the step says."""


def _signal(name: str) -> signal.Signals:
    return signal.Signals[f"SIG{name.removeprefix('SIG')}"]


def _is_free(port: int) -> bool:
    try:
        listen("127.0.0.1", port).close()
    except OSError:
        return False
    return True


_REQUEST = {"request", "headers", "times", "concurrency", "new_connection_each", "vary", "client_closes", "capture"}
_STEPS: dict[str, tuple[Callable[[Operations, dict[str, Any]], Awaitable[None]], set[str]]] = {
    "start_gateway": (Operations._start_gateway, {"workers"}),
    "send": (Operations._send, _REQUEST),
    "send_async": (Operations._send_async, _REQUEST),
    "hold": (Operations._hold, {*_REQUEST, "streams", "count"}),
    "stream": (Operations._stream, {*_REQUEST, "backend_events", "every_ms"}),
    "wait_stream": (Operations._wait_stream, set()),
    "get": (Operations._get, {"path", "as", "times", "headers"}),
    "scrape": (Operations._scrape, {"as", "times", "new_connection_each"}),
    "rss": (Operations._rss, {"as"}),
    "processes": (Operations._processes, {"as"}),
    "store": (Operations._store, {"state"}),
    "kill_worker": (Operations._kill_worker, {"signal", "when"}),
    "kill_image_worker": (Operations._strike_image_worker, {"signal", "when", "times"}),
    "stop_image_worker": (Operations._strike_image_worker, {"when", "times"}),
    "kill_main": (Operations._signal_main, {"signal"}),
    "signal_main": (Operations._signal_main, {"signal"}),
    "arm": (Operations._arm, {"kill_image_worker_on_hash_of"}),
    "sleep_ms": (Operations._sleep, {"ms", "sleep_ms"}),
    "wait_exit": (Operations._wait_exit, set()),
}
