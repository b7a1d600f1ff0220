"""How one case is played: its requests, plain steps and placeholders, and what is waited for afterwards.

Decided here: the order of things in a case. Not decided here: operations on processes (``operations``), judgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from typing import Any

from tests.case_runner import metrics, pictures, pointer
from tests.case_runner.behaviour import BadScript
from tests.case_runner.cases import Case
from tests.case_runner.http_client import ClientCloses, Outgoing, Response, exchange, raw_bytes, request_bytes
from tests.case_runner.observation import Exchange, Observation
from tests.case_runner.origin import read_routes
from tests.case_runner.procfs import Family
from tests.case_runner.topology import CHAT, Topology

_DEADLINE_S = 90.0
_SETTLE_S = 3.0
_SAMPLE_S = 0.02
_STEP_KEYS = {"request", "headers", "client_closes", "capture", "sleep_ms", "path", "method"}
_CLOSES_KEYS = {"after_ms", "after_events", "after_bytes", "half_close_after_body", "reset"}


class MemoryPeak:
    """The highest memory of all processes while a case runs, against what it was before."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._before = family.memory_bytes()
        self._ended = threading.Event()
        self.growth_bytes = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            self.growth_bytes = max(self.growth_bytes, self._family.memory_bytes() - self._before)

    def stop(self) -> int:
        """The peak's height."""
        self._ended.set()
        self._thread.join()
        return self.growth_bytes


def read_closes(spec: dict[str, Any] | None) -> ClientCloses | None:
    """``client_closes`` of a step. Raises BadScript."""
    if spec is None:
        return None
    unknown = spec.keys() - _CLOSES_KEYS
    if unknown:
        raise BadScript(f"client_closes: unknown {', '.join(sorted(unknown))}")
    return ClientCloses(
        after_s=None if "after_ms" not in spec else spec["after_ms"] / 1000,
        after_events=spec.get("after_events"),
        after_bytes=spec.get("after_bytes"),
        half_close_after_body=bool(spec.get("half_close_after_body")),
        reset=bool(spec.get("reset")),
    )


def raw_path(request: bytes) -> str:
    """The path that a raw request asks for, in origin or absolute form; the chat route where it is no request."""
    words = request.partition(b"\r\n")[0].split(b" ")
    target = words[1].decode("latin-1") if len(words) > 2 else ""
    path = re.sub(r"^https?://[^/?]*", "", target).partition("?")[0]
    return path if path.startswith("/") else CHAT


class Performance:
    """One case being played on a topology."""

    def __init__(self, case: Case, topology: Topology, time_scale: float) -> None:
        self.case = case
        self.topology = topology
        self.names = topology.names(case)
        self.raw = self._raw_request()
        self.path = raw_path(self.raw) if self.raw else case.request.get("path", CHAT)
        grid = int(topology.settings["model.factor"])
        self.seen = Observation(case.folder, self.path, time_scale, grid)
        self._slices: list[tuple[Exchange, int, int | None]] = []
        self._watch_close = "connection_closed_after" in case.expects

    def _raw_request(self) -> bytes:
        name = self.case.request.get("raw_file")
        if name is None:
            return b""
        return self.names.fill_bytes((self.case.folder / str(name)).read_bytes())

    async def begin(self) -> None:
        """Set the stand-ins for this case."""
        topology, case = self.topology, self.case
        if "max_rss_growth_mb" in case.expects:
            await topology.warm_up()
        await topology.backend.begin(case.backend, self.path)
        origin = json.loads(self.names.fill(case.origin_text)) if case.origin_text else {}
        topology.origin.begin(read_routes(origin, case.folder))
        if case.expects & {"metrics", "request_counter_delta"}:
            self.seen.before = await topology.scrape()

    async def play_requests(self) -> None:
        """The case's request, or its plain steps, one after the other."""
        peak = MemoryPeak(self.topology.gateway.family) if "max_rss_growth_mb" in self.case.expects else None
        try:
            if not self.case.steps:
                for _ in range(int(self.case.expect.get("repeat", 1))):
                    await self.send({}, role="step")
            for step in self.case.steps:
                await self.plain_step(step)
        finally:
            if peak is not None:
                self.seen.peak_growth_bytes = peak.stop()

    async def plain_step(self, step: dict[str, Any]) -> None:
        """A pause, a request, or both. Raises BadScript."""
        unknown = step.keys() - _STEP_KEYS
        if unknown:
            raise BadScript(f"a step with {', '.join(sorted(unknown))}")
        if "sleep_ms" in step:
            await asyncio.sleep(step["sleep_ms"] / 1000)
        if "request" in step or "client_closes" in step:
            await self.send(step, role="step")

    def outgoing(self, step: dict[str, Any], vary: dict[str, str] | None = None) -> tuple[Outgoing, bytes, str]:
        """What a step writes: bytes, the body on its own, the body's file."""
        request = self.case.request
        named = str(step.get("request", request.get("raw_file", "")))
        if named.endswith(".http") or (self.raw and "request" not in step):
            made = raw_bytes(self.names.fill_bytes((self.case.folder / named).read_bytes()))
            return made, made.body, named
        file = str(step.get("request", request.get("body_file", "request.json")))
        body = self.names.fill_bytes((self.case.folder / file).read_bytes())
        headers = {**request.get("headers", {}), **step.get("headers", {})}
        headers = {name: self.names.fill(value) for name, value in headers.items()}
        if vary:
            body, headers = self._varied(body, headers, vary)
        method = step.get("method", request.get("method", "POST"))
        path = self.names.fill(step.get("path", request.get("path", CHAT)))
        host = f"127.0.0.1:{self.topology.gateway.port}"
        return request_bytes(method, path, headers, body, host), body, file

    def _varied(self, body: bytes, headers: dict[str, str], vary: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        headers = dict(headers)
        document = json.loads(body)
        for target, generator in vary.items():
            if target == "image":
                if generator != "recolour":
                    raise BadScript(f"vary image: {generator}")
                for part in pointer.pictures(document):
                    source = part["image_url"]
                    source["url"] = pictures.recoloured(source["url"], self.names.rng)
                continue
            kind, _, count = generator.partition("-")
            if kind != "random" or not count.isdigit():
                raise BadScript(f"vary {target}: {generator}")
            value = self.names.random(int(count))
            if target.startswith("header:"):
                headers[target.removeprefix("header:")] = value
            else:
                pointer.put(document, target, value)
        return json.dumps(document, ensure_ascii=False).encode(), headers

    async def send(
        self, step: dict[str, Any], *, role: str, name: str = "", vary: dict[str, str] | None = None, alone: bool = True
    ) -> Exchange:
        """Send one request and note it. ``alone``: nothing else is under way, so what it causes can be told."""
        outgoing, body, file = self.outgoing(step, vary)
        calls, log_at = len(self.topology.backend.calls), len(self.topology.gateway.said())
        closes = read_closes(step.get("client_closes"))
        try:
            response = await exchange(
                self.topology.gateway.port, outgoing, deadline_s=_DEADLINE_S * self.seen.time_scale, closes=closes,
                watch_close=self._watch_close,
            )  # fmt: skip
        except OSError as error:
            response = Response(time.monotonic(), ending="no-response", problem=str(error))
            response.ended_at_s = time.monotonic()
        made = Exchange(len(self.seen.exchanges) + 1, body, response, request_file=file, role=role, name=name)
        if response.ending == "client-left":
            made.left_at_s = response.ended_at_s
        self.seen.exchanges.append(made)
        if alone:
            if self._slices and self._slices[-1][2] is None:
                self._slices[-1] = (*self._slices[-1][:2], calls)
            self._slices.append((made, calls, None))
            made.log = self.topology.gateway.said()[log_at:]
        self._capture(step, calls)
        return made

    def _capture(self, step: dict[str, Any], since: int) -> None:
        calls = self.topology.backend.calls[since:]
        for name, at in step.get("capture", {}).items():
            found = pointer.look_up(json.loads(calls[-1].body), at) if calls else pointer.MISSING
            # What was not there stands for itself: a gateway that adds no such member is judged by the relations.
            self.names.values[name] = "" if found is pointer.MISSING else str(found)

    # --- afterwards -----------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait, within bounds, for what comes a moment after the last answer; then note everything."""
        until_s = time.monotonic() + _SETTLE_S * self.seen.time_scale
        while True:
            await self._note()
            if self._settled() or time.monotonic() > until_s:
                return
            await asyncio.sleep(0.02)

    async def _note(self) -> None:
        topology, seen = self.topology, self.seen
        seen.calls = list(topology.backend.calls)
        for made, first, end in self._slices:
            made.calls = seen.calls[first:end]
        seen.origin_calls = list(topology.origin.calls)
        seen.origin_bytes = sum(call.wire.sent_bytes for call in {id(c.wire): c for c in seen.origin_calls}.values())
        seen.private_connections = topology.origin.private_connections
        if self.case.expects & {"metrics", "kv_budget_returned", "recovers"} and topology.gateway.exit_code is None:
            seen.after = await topology.scrape()

    def _settled(self) -> bool:
        expects, seen = self.case.expects, self.seen
        if "backend_connection_closed_within_ms" in expects and any(c.wire.closed_at_s is None for c in seen.calls):
            return False
        if "origin_connection_closed_within_ms" in expects and any(
            call.wire.closed_at_s is None for call in seen.origin_calls
        ):
            return False
        if "first_connection_closed" in expects and any(c.wire.closed_at_s is None for c in seen.calls[:1]):
            return False
        if "metrics" in expects and seen.after is not None and seen.before is not None:
            grown = seen.after.total(metrics.REQUESTS) - seen.before.total(metrics.REQUESTS)
            if grown < len(seen.exchanges):
                return False
        if "kv_budget_returned" in expects and seen.after is not None:
            return seen.after.total(metrics.RESERVED) == 0
        return True

    async def check_alive(self) -> None:
        """Whether the same process serves a plain request now."""
        if "gateway_alive_after" not in self.case.expects:
            return
        if self.case.expect.get("gateway_alive_after") is False:
            self.seen.alive_after = self.topology.gateway.exit_code is None
            return
        patient = self.case.needs_own_gateway
        problem = await self.topology.alive(patient=patient)
        self.seen.alive_after, self.seen.alive_problem = problem is None, problem or ""


async def gathered(tasks: list[asyncio.Task[Exchange]]) -> None:
    """Wait for all, and end them all when this is ended."""
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
