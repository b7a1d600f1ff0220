"""The stand-in backend: replicas on ports of their own that answer as backend.json says and record all they get.

Probes of the gateway are answered as vLLM answers them and do not count; only requests on the case's path do.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from tests.case_runner.behaviour import BackendScript, Behaviour
from tests.case_runner.engine_answers import PROBE_PATHS, default_answer, probe_answer
from tests.case_runner.polling import until
from tests.case_runner.wire import Acceptor, Head, Wire, listen

_HOST = "127.0.0.1"


@dataclass(slots=True, eq=False)
class BackendCall:
    """One request that a replica got, and what it sent back."""

    replica: int
    head: Head
    body: bytes
    at_s: float
    wire: Wire
    behaviour: Behaviour
    port: int
    sent_body: bytearray = field(default_factory=bytearray)
    done: bool = False


class Replica:
    """One engine: a port that stays its own whether it listens or not."""

    def __init__(self, number: int, owner: StandInBackend) -> None:
        self.number = number
        self._owner = owner
        self._acceptor: Acceptor | None = None
        self._held = listen(_HOST, accepting=False)
        self.port = int(self._held.getsockname()[1])
        self.requests = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{_HOST}:{self.port}"

    async def set_listening(self, wanted: bool) -> None:
        """Accept connections, or refuse them; the port is kept."""
        if wanted and self._acceptor is None:
            self._held.listen(128)
            self._acceptor = Acceptor(self._held, self._serve)
        elif not wanted and self._acceptor is not None:
            await self._acceptor.stop()
            self._acceptor = None
            self._held = listen(_HOST, self.port, accepting=False)

    async def drop_connections(self) -> None:
        """End every connection."""
        if self._acceptor is not None:
            await self._acceptor.drop_connections()

    async def stop(self) -> None:
        """Give the port back."""
        await self.set_listening(False)
        self._held.close()

    async def _serve(self, wire: Wire) -> None:
        while True:
            try:
                async with asyncio.timeout(self._owner.script.idle_close_s):
                    head = await wire.read_head()
            except TimeoutError:
                return
            body = await wire.read_request_body(head)
            if not await self._owner.answer(self, wire, head, body):
                return


class StandInBackend:
    """All replicas of a topology. ``begin`` sets what they do for one case and forgets what they got before."""

    def __init__(self, max_model_len: int) -> None:
        self._max_model_len = max_model_len
        self.replicas: list[Replica] = []
        self.script = BackendScript()
        self.path = ""
        self.calls: list[BackendCall] = []
        self.overrides: deque[Behaviour] = deque()
        self._counted = 0

    async def open(self, replicas: int) -> None:
        """Take ports for so many replicas; none listens yet."""
        self.replicas = [Replica(number, self) for number in range(replicas)]

    async def begin(self, script: BackendScript, path: str) -> None:
        """Behave as ``script`` from now on; only requests on ``path`` count."""
        self.script, self.path = script, path
        self.calls = []
        self.overrides.clear()
        self._counted = 0
        for replica in self.replicas:
            replica.requests = 0
            await replica.set_listening(script.listens(replica.number))

    async def stop(self) -> None:
        """End all."""
        for replica in self.replicas:
            await replica.stop()

    async def answer(self, replica: Replica, wire: Wire, head: Head, body: bytes) -> bool:
        """Answer one request; whether the connection stays open."""
        path = head.start_line.split(" ")[1].split("?")[0] if head.start_line.count(" ") >= 2 else ""
        if path != self.path:
            if path in PROBE_PATHS:
                behaviour = probe_answer(path, body, self._max_model_len)
            else:
                behaviour = default_answer(path, body)
            return await self._send(BackendCall(replica.number, head, body, 0.0, wire, behaviour, replica.port))
        behaviour = self._next(replica, path, body)
        wanted = behaviour.only_if_accept_encoding_contains
        if wanted is not None and wanted.lower() not in ",".join(head.values("accept-encoding")).lower():
            behaviour = behaviour.uncoded()
        call = BackendCall(replica.number, head, body, time.monotonic(), wire, behaviour, replica.port)
        self.calls.append(call)
        if self._upcoming_is_closed(replica):
            asyncio.get_running_loop().create_task(self._close_after(call, replica))
        return await self._send(call)

    def _next(self, replica: Replica, path: str, body: bytes) -> Behaviour:
        own = self.script.own_of(replica.number)
        behaviours, index = (own, replica.requests) if own else (self.script.on_request, self._counted)
        replica.requests += 1
        self._counted += 1
        if self.overrides:
            return self.overrides.popleft()
        return behaviours[min(index, len(behaviours) - 1)] if behaviours else default_answer(path, body)

    def _upcoming_is_closed(self, replica: Replica) -> bool:
        own = self.script.own_of(replica.number)
        behaviours, index = (own, replica.requests) if own else (self.script.on_request, self._counted)
        return bool(behaviours) and behaviours[min(index, len(behaviours) - 1)].end == "not-listening"

    async def _close_after(self, call: BackendCall, replica: Replica) -> None:
        await until(lambda: call.done)
        await replica.set_listening(False)

    async def _send(self, call: BackendCall) -> bool:
        try:
            return await self._respond(call)
        finally:
            call.done = True

    async def _respond(self, call: BackendCall) -> bool:
        behaviour, wire = call.behaviour, call.wire
        if behaviour.delay_s and not await _pause(wire, behaviour.delay_s):
            return False
        if behaviour.answers:
            await wire.send(behaviour.head())
            await self._send_body(call)
        match behaviour.end:
            case "rst" | "rst-before-status" | "rst-after-request" | "not-listening":
                await wire.close(reset=True)
                return False
            case "hang":
                await wire.until_closed()
                return False
            case "fin":
                return False
        if behaviour.framing == "chunked":
            await wire.send(b"0\r\n\r\n")
        return not behaviour.close_after_response and behaviour.framing != "raw"

    async def _send_body(self, call: BackendCall) -> None:
        wire, chunked = call.wire, call.behaviour.framing == "chunked"
        gathered = bytearray()

        async def flush() -> None:
            if gathered:
                framed = b"%x\r\n%s\r\n" % (len(gathered), gathered) if chunked else bytes(gathered)
                call.sent_body.extend(gathered)
                gathered.clear()
                await wire.send(framed)

        for write in call.behaviour.writes:
            if write.is_raw:
                await flush()
                await wire.send(write.data)
            else:
                gathered += write.data
            if write.flush:
                await flush()
            if write.sleep_s and not await _pause(wire, write.sleep_s):
                raise ConnectionResetError
        await flush()


async def _pause(wire: Wire, seconds: float) -> bool:
    """Wait, unless the gateway leaves first; whether it is still there."""
    try:
        async with asyncio.timeout(seconds):
            await wire.until_closed()
    except TimeoutError:
        return True
    return False
