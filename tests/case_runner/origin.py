"""The stand-in image origin, and the private listeners that a right gateway never connects to.

Decided here: routes of origin.json and what is recorded. The origin listens on a loopback address of its own, which
alone is declared public; the private listeners are on 127.0.0.1, one of them on the origin's own port number.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.case_runner.behaviour import BadScript
from tests.case_runner.wire import Acceptor, Gone, Head, Headers, Wire, listen

ORIGIN_ADDRESS = "127.0.0.9"
PRIVATE_ADDRESS = "127.0.0.1"
_SEND_BUFFER_BYTES = 64 * 1024
_ROUTE_KEYS = {
    "path_raw", "status", "headers", "body_file", "body_text", "body_b64", "body_repeat", "body_then_repeat", "when",
    "nth", "delay_ms", "drip", "end", "host", "method",
}  # fmt: skip
_WHEN_KEYS = {"header_present", "header_absent", "header_equals", "header_contains"}


@dataclass(frozen=True, slots=True)
class Repeat:
    """Bytes over and over; ``times`` None is for ever."""

    data: bytes
    times: int | None


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of ``routes``."""

    path_raw: str
    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    repeat: Repeat | None = None
    when: dict[str, Any] = field(default_factory=dict)
    nth: int | None = None
    host: str | None = None
    delay_s: float = 0.0
    drip_bytes: int | None = None
    drip_s: float = 0.0
    end: str = "normal"

    def takes(self, target: str, head: Head, nth: int) -> bool:
        """Whether this route answers the nth call of a target."""
        if self.path_raw != target or (self.nth is not None and self.nth != nth):
            return False
        if self.host is not None and head.get("host").split(":")[0] != self.host.split(":")[0]:
            return False
        return all(_holds(condition, wanted, head) for condition, wanted in self.when.items())


def _holds(condition: str, wanted: Any, head: Head) -> bool:
    match condition:
        case "header_present":
            return all(head.has(name) for name in _listed(wanted))
        case "header_absent":
            return not any(head.has(name) for name in _listed(wanted))
        case "header_equals":
            return all(head.get(name) == value for name, value in wanted.items())
        case _:
            return all(value.lower() in head.get(name).lower() for name, value in wanted.items())


def _listed(wanted: str | list[str]) -> list[str]:
    return [wanted] if isinstance(wanted, str) else wanted


def read_routes(spec: dict[str, Any], folder: Path) -> tuple[Route, ...]:
    """``routes`` of origin.json with their files read. Raises BadScript."""
    return tuple(_read_route(each, folder) for each in spec.get("routes", ()))


def _read_route(spec: dict[str, Any], folder: Path) -> Route:
    unknown = (spec.keys() - _ROUTE_KEYS) | (spec.get("when", {}).keys() - _WHEN_KEYS)
    if unknown:
        raise BadScript(f"origin.json: unknown {', '.join(sorted(unknown))}")
    body = spec.get("body_text", "").encode()
    if spec.get("body_b64"):
        body = base64.b64decode(spec["body_b64"])
    if spec.get("body_file"):
        body = (folder / spec["body_file"]).read_bytes()
    repeat = spec.get("body_repeat") or spec.get("body_then_repeat")
    drip = spec.get("drip") or {}
    return Route(
        path_raw=spec["path_raw"],
        status=spec.get("status", 200),
        headers=tuple((str(name), str(value)) for name, value in spec.get("headers", ())),
        body=body,
        repeat=None if repeat is None else _read_repeat(repeat),
        when=spec.get("when", {}),
        nth=spec.get("nth"),
        host=spec.get("host"),
        delay_s=spec.get("delay_ms", 0) / 1000,
        drip_bytes=drip.get("bytes"),
        drip_s=drip.get("every_ms", 0) / 1000,
        end=spec.get("end", "normal"),
    )


def _read_repeat(spec: dict[str, Any]) -> Repeat:
    unknown = spec.keys() - {"b64", "text", "times", "endless"}
    if unknown:
        raise BadScript(f"origin.json: a repetition with {', '.join(sorted(unknown))}")
    data = base64.b64decode(spec["b64"]) if "b64" in spec else spec["text"].encode()
    return Repeat(data, None if spec.get("endless") else int(spec["times"]))


@dataclass(slots=True, eq=False)
class OriginCall:
    """One request that the origin got."""

    target: str
    head: Head
    at_s: float
    wire: Wire


class StandInOrigin:
    """The public origin, the private listener on its port number, and another private listener."""

    def __init__(self) -> None:
        self.calls: list[OriginCall] = []
        self.private_connections = 0
        self._routes: tuple[Route, ...] = ()
        self._seen: Counter[str] = Counter()
        self._acceptors: list[Acceptor] = []
        self.port = 0
        self.private_port = 0

    async def open(self) -> None:
        """Listen: one port number on both addresses, and a private one."""
        public, twin = _twins()
        private = listen(PRIVATE_ADDRESS)
        public.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)  # what is accepted inherits it
        self.port, self.private_port = public.getsockname()[1], private.getsockname()[1]
        self._acceptors = [
            Acceptor(public, self._serve),
            Acceptor(twin, self._see_private),
            Acceptor(private, self._see_private),
        ]

    def begin(self, routes: tuple[Route, ...]) -> None:
        """Serve these routes from now on and forget what came before."""
        self._routes = routes
        self.calls = []
        self._seen.clear()
        self.private_connections = 0

    async def stop(self) -> None:
        """End all."""
        for acceptor in self._acceptors:
            await acceptor.stop()

    async def _see_private(self, wire: Wire) -> None:
        self.private_connections += 1
        await wire.close()

    async def _serve(self, wire: Wire) -> None:
        while True:
            head = await wire.read_head()
            target = head.start_line.split(" ", 1)[1].rsplit(" ", 1)[0]
            self.calls.append(OriginCall(target, head, time.monotonic(), wire))
            self._seen[target] += 1
            nth = self._seen[target]
            route = next((each for each in self._routes if each.takes(target, head, nth)), Route(target, status=404))
            if not await self._answer(wire, route):
                return

    async def _answer(self, wire: Wire, route: Route) -> bool:
        if route.delay_s:
            await _pause(wire, route.delay_s)
        names = {name.lower(): value for name, value in route.headers}
        chunked = "chunked" in names.get("transfer-encoding", "").lower()
        lines = [f"HTTP/1.1 {route.status} {http.client.responses.get(route.status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in route.headers]
        endless = route.repeat is not None and route.repeat.times is None
        if not chunked and "content-length" not in names and not endless:
            repeated = len(route.repeat.data) * (route.repeat.times or 0) if route.repeat is not None else 0
            lines.append(f"Content-Length: {len(route.body) + repeated}")
        until_close = endless and not chunked and "content-length" not in names
        if until_close:
            lines.append("Connection: close")
        await wire.send("\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n")
        await self._send_body(wire, route, chunked=chunked)
        if route.end == "reset":
            await wire.close(reset=True)
            return False
        if route.end != "normal":
            return False
        if chunked:
            await wire.send(b"0\r\n\r\n")
        return not until_close

    async def _send_body(self, wire: Wire, route: Route, *, chunked: bool) -> None:
        async def put(data: bytes) -> None:
            await wire.send(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)

        step = route.drip_bytes or len(route.body) or 1
        for at in range(0, len(route.body), step):
            await put(route.body[at : at + step])
            if route.drip_s:
                await _pause(wire, route.drip_s)
        if route.repeat is None:
            return
        sent = 0
        while route.repeat.times is None or sent < route.repeat.times:
            await put(route.repeat.data)
            sent += 1
            if sent % 16 == 0:
                await asyncio.sleep(0)  # the reader's task must see that the other side left


async def _pause(wire: Wire, seconds: float) -> None:
    """Wait. Raises Gone when the gateway leaves first."""
    try:
        async with asyncio.timeout(seconds):
            await wire.until_closed()
    except TimeoutError:
        return
    raise Gone


def _twins() -> tuple[socket.socket, socket.socket]:
    """One port number on both addresses."""
    for _ in range(50):
        public = listen(ORIGIN_ADDRESS)
        try:
            return public, listen(PRIVATE_ADDRESS, public.getsockname()[1])
        except OSError:
            public.close()
    raise OSError("no port number is free on both loopback addresses")
