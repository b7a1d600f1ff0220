"""The processes: two engines, Redis, two gateways on ports that stay theirs, HAProxy and Envoy before both.

Decided here: what an operator does. A gateway is told to leave, is waited for, is started anew, and the next one has
its turn once every balancer takes the new one for well. Killing it is the same without asking.
"""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.e2e.balancers import KINDS, Balancer
from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.ports import free_port
from tests.state.redis_server import RedisServer, running

# So slow that their buckets never run dry (`books` reads them as sums), and above what a run can use in a day.
RATES = {"tokens": "2M/day", "requests": "50k/day"}
REPLICAS = 2
# Drains outlast any stream of the load, and two checks of a balancer fit into a settle. Redis is given all the time
# that a busy machine may need: outages of it are the business of other tests.
_ENVIRONMENT = {
    "VLMGW_SERVER_SETTLE_S": "1",
    "VLMGW_SERVER_DRAIN_TIMEOUT_S": "60",
    "VLMGW_REDIS_DEADLINE_S": "20",
    "VLMGW_REDIS_CONNECT_TIMEOUT_S": "20",
    "VLMGW_REDIS_LEASE_S": "10",
    "VLMGW_REDIS_MIN_REPLICAS": str(REPLICAS),
}
_PATIENCE_S = 90.0  # beside a load, on a busy machine


@dataclass(frozen=True, slots=True)
class Turn:
    """One gateway's end and new beginning, by the monotonic clock: asked to leave, gone, back, trusted by balancers."""

    gateway: int
    asked_s: float
    gone_s: float
    back_s: float
    trusted_s: float
    exit_code: int

    def to_json(self) -> dict[str, object]:
        return {
            "gateway": self.gateway,
            "exit_code": self.exit_code,
            "left_after_s": round(self.gone_s - self.asked_s, 2),
            "ready_after_s": round(self.back_s - self.gone_s, 2),
            "trusted_after_s": round(self.trusted_s - self.back_s, 2),
        }


class Site:
    """All of them, running inside ``with``."""

    def __init__(self, folder: Path, decode_tokens_per_s: int = 60) -> None:
        self._folder = folder
        self._decode = str(decode_tokens_per_s)
        self._stack = ExitStack()
        self.ports = [free_port() for _ in range(REPLICAS)]
        self.gateways: list[Gateway] = []
        self.lines: list[dict[str, Any]] = []  # access lines of those that are gone
        self.outages = 0  # how often one of them lost Redis
        self.turns: list[Turn] = []
        self.deaths: list[Turn] = []

    def __enter__(self) -> Site:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _start(self) -> None:
        enter = self._stack.enter_context
        self.redis: RedisServer = enter(running())
        words = ("--encode-ms-per-patch", "0.001", "--decode-tokens-per-s", self._decode, "--batch-slope", "0")
        with ThreadPoolExecutor() as threads:  # all at once: most of a start is waiting for its turn
            self.engines = list(threads.map(lambda _: enter(Engine(*words)), range(2)))
        rates = ", ".join(f"{unit}: {rate}" for unit, rate in RATES.items())
        self._policies = write_policies(self._folder / "policies", default=f"rates: {{{rates}}}\nqueue_timeout_s: 60\n")
        self.gateways = [self._gateway(port) for port in self.ports]
        self._stack.callback(self._end_gateways)
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda gateway: gateway.__enter__(), self.gateways))
        self.balancers = [enter(Balancer(kind, self.ports, self._folder)) for kind in KINDS]

    def _end_gateways(self) -> None:
        for gateway in self.gateways:
            if gateway.url:
                gateway.end()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _gateway(self, port: int) -> Gateway:
        backends = [word for engine in self.engines for word in ("--backend", engine.url)]
        words = (*backends, "--policies", str(self._policies), "--pool", "1", "--port", str(port))
        environment = {**_ENVIRONMENT, "VLMGW_REDIS_URL": self.redis.url}
        return Gateway(*words, environment=environment, patience_s=_PATIENCE_S)

    def exchanges(self) -> list[dict[str, Any]]:
        """All access lines so far."""
        return [*self.lines, *(line for gateway in self.gateways for line in gateway.lines("exchange"))]

    def store_outages(self) -> int:
        """How often a gateway lost Redis so far."""
        return self.outages + sum(len(gateway.lines("store_away")) for gateway in self.gateways)

    def replace(self, number: int) -> None:
        """SIGTERM, wait, start anew, wait for the balancers."""
        self.turns.append(self._turn(number, signal.SIGTERM))

    def kill(self, number: int) -> None:
        """The same with SIGKILL."""
        self.deaths.append(self._turn(number, signal.SIGKILL))

    def _turn(self, number: int, how: signal.Signals) -> Turn:
        gateway, port = self.gateways[number], self.ports[number]
        asked_s = time.monotonic()
        gateway.signal(how)
        exit_code = gateway.process.wait(timeout=_PATIENCE_S)
        gone_s = time.monotonic()
        gateway.end()
        self.lines += gateway.lines("exchange")
        self.outages += len(gateway.lines("store_away"))
        if how is signal.SIGKILL:
            self._until_all(port, "its death known", well=False)
        self.gateways[number] = self._gateway(port).__enter__()
        back_s = time.monotonic()
        self._until_all(port, "trust in the new one", well=True)
        return Turn(number, asked_s, gone_s, back_s, time.monotonic(), exit_code)

    def _until_all(self, port: int, what: str, *, well: bool) -> None:
        for balancer in self.balancers:
            until(partial(self._agrees, balancer, port, well=well), what, _PATIENCE_S)

    @staticmethod
    def _agrees(balancer: Balancer, port: int, *, well: bool) -> bool:
        return balancer.takes_for_well(port) is well
