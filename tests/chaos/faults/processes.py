"""Kill -9 and freeze: image workers, gateway processes, replicas, backends, Redis, the origin."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from tests.chaos.fleet import FETCH_S, JOB_S, LEASE_S, REPLICAS, RESPONSE_S, SHARED, SPLIT
from tests.chaos.invariants import MAY_HAVE_RUN, Excuse
from tests.chaos.parts import until
from tests.chaos.run import Fault, Strike

_WORKER = Excuse(frozenset({"image_worker_lost", "pool_saturated"}))
_BACKEND = Excuse(MAY_HAVE_RUN)
_NO_BACKEND = Excuse(MAY_HAVE_RUN | {"no_backend", "backend_unreachable"})
_ORIGIN = Excuse(frozenset({"source_failed"}))
_GATEWAY = Excuse(losses=True)
# Whoever is frozen sees, once thawed, that the time of what it waited for is over.
_FROZEN = Excuse(MAY_HAVE_RUN | {"source_failed"})
_GATEWAY_AWAY = Excuse(losses=True, refusals=True)


def _kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def workers_killed(strike: Strike) -> None:
    """Every worker, one after the other, then all at one time."""
    gateway = strike.fleet.gateway
    for worker in gateway.workers():
        _kill(worker)
        strike.answers(4)
    for worker in gateway.workers():
        _kill(worker)
    strike.answers(8)


def workers_frozen(strike: Strike) -> None:
    """All of them stop; the deadline of their jobs replaces those that have one."""
    frozen = strike.fleet.gateway.workers()
    for worker in frozen:
        _kill(worker, signal.SIGSTOP)
    strike.during(JOB_S + 1)
    for worker in frozen:
        _kill(worker, signal.SIGCONT)
    strike.answers(8)


def backend_killed(strike: Strike) -> None:
    strike.fleet.kill_backend(0)
    strike.answers(12)


def backends_killed(strike: Strike) -> None:
    for number in range(len(strike.fleet.backends)):
        strike.fleet.kill_backend(number)
    strike.answers(12)


def backend_frozen(strike: Strike) -> None:
    """It still accepts connections, which is what makes it worse than a dead one."""
    strike.fleet.backends[0].freeze()
    strike.during(RESPONSE_S + 1.5)
    strike.fleet.backends[0].thaw()


def origin_killed(strike: Strike) -> None:
    strike.fleet.kill_origin()
    strike.during(FETCH_S)
    strike.answers(14)


def origin_frozen(strike: Strike) -> None:
    strike.fleet.origin.freeze()
    strike.during(FETCH_S)
    strike.answers(14)
    strike.fleet.origin.thaw()


def redis_killed(strike: Strike) -> None:
    """It comes back empty."""
    strike.fleet.kill_redis()
    until(lambda: all(gateway.metric("state_degraded") for gateway in strike.fleet.gateways), "own shares everywhere")
    strike.answers(12)
    strike.fleet.revive_redis()


def redis_frozen(strike: Strike) -> None:
    assert strike.fleet.redis is not None
    strike.fleet.redis.freeze()
    until(lambda: all(gateway.metric("state_degraded") for gateway in strike.fleet.gateways), "own shares everywhere")
    strike.answers(12)
    strike.fleet.redis.thaw()


def gateway_killed(strike: Strike) -> None:
    """The only one; its workers must not stay."""
    gateway = strike.fleet.gateway
    workers = gateway.workers()
    gateway.kill()
    until(lambda: not [pid for pid in workers if pid in gateway.family.members(with_zombies=False)], "no orphans")
    strike.answers(6)


def gateway_frozen(strike: Strike) -> None:
    """Shorter than anybody's patience: nothing at all may be lost."""
    strike.fleet.gateway.freeze()
    strike.during(1.5)
    strike.fleet.gateway.thaw()


def process_killed(strike: Strike) -> None:
    gateway = strike.fleet.gateway
    victim = gateway.serving()[0]
    _kill(victim)
    until(lambda: gateway.lines("process_lost"), "the loss in the log")
    strike.answers(8)
    until(lambda: len(gateway.serving()) == gateway.processes and gateway.is_ready(), "its successor")


def process_frozen(strike: Strike) -> None:
    """Its connections wait; the other process serves its own."""
    victim = strike.fleet.gateway.serving()[0]
    _kill(victim, signal.SIGSTOP)
    strike.during(1.5)
    _kill(victim, signal.SIGCONT)


def supervisor_killed(strike: Strike) -> None:
    gateway = strike.fleet.gateway
    before = gateway.family.members(with_zombies=False)
    gateway.kill()
    until(lambda: not set(before) & set(gateway.family.members(with_zombies=False)), "no orphans")
    strike.answers(6)


def replica_killed(strike: Strike) -> None:
    """What it held in Redis comes back with its lease."""
    fleet = strike.fleet
    fleet.gateways[1].kill()
    strike.answers(12)
    strike.during(LEASE_S + 1)


def replica_frozen(strike: Strike) -> None:
    """Longer than its lease: others have its budget meanwhile, and it must not give back twice."""
    replica = strike.fleet.gateways[1]
    replica.freeze()
    strike.during(LEASE_S + 1.5)
    replica.thaw()


FAULTS = (
    Fault("workers-killed", workers_killed, excuse=_WORKER, is_short=True),
    Fault("workers-frozen", workers_frozen, excuse=_WORKER),
    Fault("backend-killed", backend_killed, excuse=_BACKEND, is_short=True),
    Fault("backends-killed", backends_killed, excuse=_NO_BACKEND, is_short=True),
    Fault("backend-frozen", backend_frozen, excuse=_BACKEND, is_short=True),
    Fault("origin-killed", origin_killed, excuse=_ORIGIN),
    Fault("origin-frozen", origin_frozen, excuse=_ORIGIN),
    Fault("gateway-frozen", gateway_frozen, excuse=_FROZEN),
    Fault("gateway-killed", gateway_killed, excuse=_GATEWAY_AWAY, bound_s=60),
    Fault("process-killed", process_killed, SHARED, _GATEWAY, bound_s=20),
    Fault("process-frozen", process_frozen, SHARED, _FROZEN),
    Fault("process-killed-split", process_killed, SPLIT, _GATEWAY, bound_s=20),
    Fault("supervisor-killed", supervisor_killed, SPLIT, _GATEWAY_AWAY, bound_s=60),
    Fault("redis-killed", redis_killed, SHARED),
    Fault("redis-frozen", redis_frozen, SHARED),
    Fault("replica-killed", replica_killed, REPLICAS, _GATEWAY, bound_s=20, is_short=True),
    Fault("replica-frozen", replica_frozen, REPLICAS, _FROZEN),
    Fault("replicas-redis-killed", redis_killed, REPLICAS),
)
