"""A whole system under chaos: gateways, backends, Redis and an origin, with a toxic proxy before everything but the
gateways.

Decided here: the shapes in which the system stands, its limits and policies. Not decided here: what strikes
(``faults``) and what must hold (``invariants``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from gateway.api.auth import hash_key
from tests.chaos.clock import WallClock
from tests.chaos.load import KEYS, Target
from tests.chaos.origin import ADDRESS
from tests.chaos.overheard import Ledger, OverheardProxy
from tests.chaos.parts import CAP, Backend, GatewayPart, Origin, until
from tests.chaos.stage import Stage
from tests.chaos.toxic import ToxicProxy
from tests.redis_program import redis_program
from tests.state.redis_server import RedisServer
from tests.state.redis_server import running as running_redis

WORKERS = 2
# Where a fault outlasts them, in a fleet of one: as short as a busy machine's honest work lets them be.
RESPONSE_S = 12.0  # longest wait for an engine's head, and longest silence afterwards
JOB_S = 15.0  # longest work on an image
FETCH_S = 12.0  # longest fetch
BODY_S = 12.0  # longest silence of a client
REDIS_S = 2.0  # longest wait for Redis
LEASE_S = 3.0  # how long what a dead replica held stays taken
SETTINGS: Mapping[str, str] = {
    "VLMGW_SERVER_SETTLE_S": "0.5",
    "VLMGW_SERVER_DRAIN_TIMEOUT_S": "30",
    "VLMGW_SERVER_BODY_TIMEOUT_S": str(BODY_S),
    "VLMGW_UPSTREAM_PROBE_INTERVAL_S": "0.3",
    "VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "3",
    "VLMGW_UPSTREAM_CONNECT_TIMEOUT_S": "30",
    "VLMGW_UPSTREAM_RESPONSE_TIMEOUT_S": str(RESPONSE_S),
    "VLMGW_UPSTREAM_IDLE_TIMEOUT_S": str(RESPONSE_S),
    "VLMGW_UPSTREAM_GONE_GRACE_S": "1",
    "VLMGW_UPSTREAM_SLOW_START_S": "1",
    # Chaos is no load: what is certainly not taken is sent elsewhere however often that happens.
    "VLMGW_UPSTREAM_RETRY_RATIO": "1",
    "VLMGW_MEDIA_JOB_DEADLINE_S": str(JOB_S),
    "VLMGW_MEDIA_SLAB_BYTES": "64MiB",
    "VLMGW_MEDIA_PREPARED_CACHE_BYTES": "8MiB",
    "VLMGW_FETCH_TOTAL_TIMEOUT_S": str(FETCH_S),
    "VLMGW_FETCH_PUBLIC_NETWORKS": f"{ADDRESS}/32",
    "VLMGW_IDENTITY_SECRET": "a secret of the chaos suite",
    "VLMGW_REDIS_LEASE_S": str(LEASE_S),
    "VLMGW_REDIS_CONNECT_TIMEOUT_S": "2",
    # No machine is so busy that a healthy Redis answers later than this.
    "VLMGW_REDIS_DEADLINE_S": str(REDIS_S),
}
# In larger fleets no fault waits for these to pass: who is slow there is slow because the machine is.
_PATIENT: Mapping[str, str] = {
    "VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "60",
    "VLMGW_UPSTREAM_RESPONSE_TIMEOUT_S": "60",
    "VLMGW_UPSTREAM_IDLE_TIMEOUT_S": "60",
    "VLMGW_UPSTREAM_CONNECT_TIMEOUT_S": "60",
    "VLMGW_MEDIA_JOB_DEADLINE_S": "60",
    "VLMGW_FETCH_TOTAL_TIMEOUT_S": "60",
    "VLMGW_SERVER_BODY_TIMEOUT_S": "60",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How a system stands: that many replicas of so many processes; with a shared store or without.

    ``has_clocks``: every gateway and Redis live by a wall clock of their own, which may jump.
    """

    replicas: int = 1
    processes: int = 1
    has_redis: bool = False
    has_clocks: bool = False


SINGLE = Shape()
SPLIT = Shape(processes=2)
SHARED = Shape(processes=2, has_redis=True)
REPLICAS = Shape(replicas=2, has_redis=True, has_clocks=True)
_BACKENDS = 2


class Fleet:
    """One shape, running. ``with`` starts all and ends all."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        self.shape = shape
        self.folder = folder
        self.clocks: dict[str, WallClock] = {}  # by the name of the gateway, and "redis"
        self.ledger = Ledger()
        self.backends: list[Backend] = []
        self.wires: list[OverheardProxy] = []
        self.gateways: list[GatewayPart] = []
        self.redis: RedisServer | None = None
        self.redis_wire: ToxicProxy | None = None

    def __enter__(self) -> Fleet:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self.stage = stack.enter_context(Stage())
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _start(self, stack: ExitStack) -> None:
        for number in range(1, _BACKENDS + 1):
            backend = Backend(self.folder, number)
            stack.callback(backend.kill)
            backend.start()
            wire = OverheardProxy(backend.port, self.ledger)
            self._open(stack, wire)
            self.backends.append(backend)
            self.wires.append(wire)
        self.origin = Origin()
        stack.callback(self.origin.kill)
        self.origin.start()
        self.origin_wire = ToxicProxy(self.origin.port, target_host=ADDRESS, host=ADDRESS)
        self._open(stack, self.origin_wire)
        if self.shape.has_redis:
            program = self._clock("redis").wrapped(_redis_program(), "redis-server") if self.shape.has_clocks else None
            self.redis = stack.enter_context(running_redis(program=program))
            self.redis_wire = ToxicProxy(self.redis.port)
            self._open(stack, self.redis_wire)
        self.policies = write_policies(self.folder / "policies")
        for number in range(1, self.shape.replicas + 1):
            gateway = self.new_gateway(f"gateway-{number}")
            stack.callback(gateway.end)
            gateway.start()
            self.gateways.append(gateway)

    def _open(self, stack: ExitStack, proxy: ToxicProxy) -> None:
        self.stage.run(proxy.start())
        stack.callback(lambda: self.stage.run(proxy.stop()))

    def new_gateway(self, name: str, settings: Mapping[str, str] | None = None) -> GatewayPart:
        """One more of this shape, not started."""
        arguments = [word for wire in self.wires for word in ("--backend", f"http://127.0.0.1:{wire.port}")]
        arguments += ["--max-pixels", CAP, "--policies", str(self.policies), "--pool", str(WORKERS)]
        environment = {**SETTINGS, **({} if self.shape == SINGLE else _PATIENT), **(settings or {})}
        if self.shape.has_clocks:
            environment |= self._clock(name).environment
        if self.redis_wire is not None:
            environment["VLMGW_REDIS_URL"] = f"redis://127.0.0.1:{self.redis_wire.port}/0"
            environment["VLMGW_REDIS_MIN_REPLICAS"] = str(self.shape.replicas * self.shape.processes)
        return GatewayPart(self.folder, name, arguments, environment, processes=self.shape.processes)

    def _clock(self, name: str) -> WallClock:
        return self.clocks.setdefault(name, WallClock(self.folder, name))

    @property
    def gateway(self) -> GatewayPart:
        return self.gateways[0]

    @property
    def target(self) -> Target:
        return Target([gateway.url for gateway in self.gateways], f"http://{ADDRESS}:{self.origin_wire.port}")

    # --- faults that a wire must tell, too ------------------------------------------------------------------------

    def kill_backend(self, number: int) -> None:
        """Nobody listens on its port afterwards, as for a gateway without a proxy between."""
        self.stage.call(self.wires[number].refuse)
        self.backends[number].kill()

    def revive_backend(self, number: int) -> None:
        self.backends[number].start()
        self.stage.run(self.wires[number].listen())

    def kill_origin(self) -> None:
        self.stage.call(self.origin_wire.refuse)
        self.origin.kill()

    def revive_origin(self) -> None:
        self.origin.start()
        self.stage.run(self.origin_wire.listen())

    def kill_redis(self) -> None:
        assert self.redis is not None
        assert self.redis_wire is not None
        self.stage.call(self.redis_wire.refuse)
        self.redis.kill()

    def revive_redis(self) -> None:
        assert self.redis is not None
        assert self.redis_wire is not None
        self.redis.start()
        self.redis_wire.target_port = self.redis.port
        self.stage.run(self.redis_wire.listen())

    def proxies(self) -> Sequence[ToxicProxy]:
        return [*self.wires, self.origin_wire, *([] if self.redis_wire is None else [self.redis_wire])]

    def count_anew(self) -> None:
        """What a fault before did to wires is not this one's."""
        for proxy in self.proxies():
            proxy.struck = 0

    def mend(self) -> float:
        """Whatever a fault did to processes and networks is undone; gateways that are gone are started again.

        Returns the moment at which the first thing worked again that had not.
        """
        for part in (*self.backends, self.origin, *self.gateways):
            part.thaw()
        for clock in self.clocks.values():
            clock.jump(0)
        for proxy in self.proxies():
            self.stage.call(proxy.heal)
        back_s: list[float] = []
        for number, backend in enumerate(self.backends):
            if not backend.is_running:
                self.revive_backend(number)
                back_s.append(time.monotonic())
        if not self.origin.is_running:
            self.revive_origin()
        for proxy in self.proxies():
            self.stage.run(proxy.listen())
        for gateway in self.gateways:
            if not gateway.is_running:
                gateway.start()
                back_s.append(time.monotonic())
        return min(back_s, default=time.monotonic())

    def is_whole(self) -> bool:
        """Every gateway is ready, sees every backend and, where there is one, the shared store."""
        for gateway in self.gateways:
            samples = gateway.samples()
            up = sum(value for name, _, value in samples if name == "backend_up")
            away = sum(value for name, _, value in samples if name == "state_degraded")
            if not gateway.is_ready() or up != len(self.backends) * gateway.processes or away:
                return False
        return True

    def pids(self) -> list[int]:
        """The processes that a request goes through: ours that asks, gateways without their workers, backends."""
        serving = [pid for gateway in self.gateways for pid in {gateway.pid, *gateway.serving()}]
        return [os.getpid(), *serving, *(backend.pid for backend in self.backends)]

    def until_whole(self) -> None:
        until(self.is_whole, "a whole system")


def _redis_program() -> str:
    program = redis_program("redis-server")
    assert program is not None, "redis-server is missing: .ci/setup installs it"
    return program


def write_policies(folder: Path, *usual_keys: str, rate: int = 12_000) -> Path:
    """Three tenants: one with room, one with a single request in flight that does not wait, one without limits."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = ", ".join(f"'{hash_key(key)}'" for key in usual_keys or (KEYS["usual"],))
    texts = {
        "usual": f"keys: [{usual}]\nkv_tokens_in_flight: 100000\nqueue_timeout_s: 60\n"
        f"rates: {{requests: {rate}/min}}\n",
        "small": f"keys: ['{hash_key(KEYS['small'])}']\nrequests_in_flight: 1\nqueue_timeout_s: 0\n",
        "crowd": f"keys: ['{hash_key(KEYS['crowd'])}']\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(f"tenant: {name}\n{text}", encoding="utf-8")
    return folder
