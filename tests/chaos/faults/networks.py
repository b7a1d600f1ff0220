"""Slow, narrow, sliced, silent and cut networks, in each direction, to backends, Redis and the origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.chaos.fleet import FETCH_S, REDIS_S, REPLICAS, RESPONSE_S, SHARED
from tests.chaos.invariants import MAY_HAVE_RUN, Excuse
from tests.chaos.parts import until
from tests.chaos.run import Fault, Strike
from tests.chaos.toxic import ToxicProxy, Toxin

_BACKEND = Excuse(MAY_HAVE_RUN)
_NO_BACKEND = Excuse(MAY_HAVE_RUN | {"no_backend", "backend_unreachable"})
_ORIGIN = Excuse(frozenset({"source_failed"}))
_SLOW = Toxin(latency_s=0.15, bytes_per_s=400_000)
_SLICED = Toxin(slice_bytes=61)
_SILENT = Toxin(is_silent=True)
_LATE = Toxin(latency_s=0.7 * REDIS_S)
_DRIP = Toxin(bytes_per_s=400, slice_bytes=4)

Wires = Callable[[Strike], Sequence[ToxicProxy]]


def _first_backend(strike: Strike) -> Sequence[ToxicProxy]:
    return strike.fleet.wires[:1]


def _backends(strike: Strike) -> Sequence[ToxicProxy]:
    return strike.fleet.wires


def _origin(strike: Strike) -> Sequence[ToxicProxy]:
    return [strike.fleet.origin_wire]


def _redis(strike: Strike) -> Sequence[ToxicProxy]:
    assert strike.fleet.redis_wire is not None
    return [strike.fleet.redis_wire]


def _poisoned(
    wires: Wires,
    *,
    up: Toxin | None = None,
    down: Toxin | None = None,
    seconds: float = 0.0,
    answers: int = 12,
) -> Callable[[Strike], None]:
    """Poison these wires for so many answers, and so long at least."""

    def strike_them(strike: Strike) -> None:
        for wire in wires(strike):
            strike.fleet.stage.call(lambda wire=wire: wire.poison(up=up, down=down))  # type: ignore[misc]  # a default binds it
        strike.during(seconds)
        strike.answers(answers)
        if any(toxin and (toxin.cut_after_bytes or toxin.ends_after_bytes) for toxin in (up, down)):
            until(lambda: any(wire.struck for wire in wires(strike)), "a connection that was cut")

    return strike_them


def _cut_often(wires: Wires) -> Callable[[Strike], None]:
    """Reset whatever is open, again and again, at any moment of any request."""

    def strike_them(strike: Strike) -> None:
        for _ in range(8):
            strike.answers(2)
            for wire in wires(strike):
                strike.fleet.stage.call(wire.cut)
        assert any(wire.struck for wire in wires(strike)), "nothing was ever cut"

    return strike_them


def _refused(wires: Wires) -> Callable[[Strike], None]:
    def strike_them(strike: Strike) -> None:
        for wire in wires(strike):
            strike.fleet.stage.call(wire.refuse)
            strike.fleet.stage.call(wire.cut)
        strike.answers(12)

    return strike_them


_CUT_UP, _CUT_DOWN = Toxin(cut_after_bytes=900), Toxin(cut_after_bytes=700)
_END_UP, _END_DOWN = Toxin(ends_after_bytes=900), Toxin(ends_after_bytes=700)
_CUT_PICTURE, _END_PICTURE = Toxin(cut_after_bytes=3_000), Toxin(ends_after_bytes=3_000)

FAULTS = (
    Fault("backends-slow", _poisoned(_backends, up=_SLOW, down=_SLOW)),
    Fault("backends-sliced", _poisoned(_backends, up=_SLICED, down=_SLICED)),
    # What a backend had not taken whole goes to the other one, unseen by the client.
    Fault("backend-cut-in-requests", _poisoned(_first_backend, up=_CUT_UP), excuse=_BACKEND, is_short=True),
    Fault("backend-cut-in-answers", _poisoned(_first_backend, down=_CUT_DOWN), excuse=_BACKEND, is_short=True),
    Fault("backend-ends-in-requests", _poisoned(_first_backend, up=_END_UP), excuse=_BACKEND),
    Fault("backend-ends-in-answers", _poisoned(_first_backend, down=_END_DOWN), excuse=_BACKEND),
    Fault("backends-cut-often", _cut_often(_backends), excuse=_NO_BACKEND),
    Fault("backend-unreachable", _refused(_first_backend), excuse=_BACKEND),
    Fault("backend-deaf", _poisoned(_first_backend, up=_SILENT, seconds=RESPONSE_S + 1), excuse=_BACKEND),
    Fault("backend-mute", _poisoned(_first_backend, down=_SILENT, seconds=RESPONSE_S + 1), excuse=_BACKEND),
    Fault("backend-slowloris", _poisoned(_first_backend, down=_DRIP, seconds=RESPONSE_S + 1), excuse=_BACKEND),
    Fault("backend-narrow", _poisoned(_first_backend, up=Toxin(bytes_per_s=3_000), seconds=2), excuse=_BACKEND),
    Fault("origin-slow", _poisoned(_origin, up=_SLOW, down=_SLOW), excuse=_ORIGIN),
    Fault("origin-sliced", _poisoned(_origin, up=_SLICED, down=_SLICED), excuse=_ORIGIN),
    Fault("origin-cut-in-answers", _poisoned(_origin, down=_CUT_PICTURE), excuse=_ORIGIN, is_short=True),
    Fault("origin-ends-in-answers", _poisoned(_origin, down=_END_PICTURE), excuse=_ORIGIN),
    Fault("origin-mute", _poisoned(_origin, down=_SILENT, seconds=FETCH_S), excuse=_ORIGIN),
    Fault("origin-slowloris", _poisoned(_origin, down=_DRIP, seconds=FETCH_S), excuse=_ORIGIN),
    Fault("redis-slow", _poisoned(_redis, up=_LATE, down=_LATE, answers=20), SHARED),
    Fault("redis-sliced", _poisoned(_redis, up=Toxin(slice_bytes=7), down=Toxin(slice_bytes=7), answers=20), SHARED),
    Fault("redis-deaf", _poisoned(_redis, up=_SILENT, answers=20), SHARED),
    Fault("redis-mute", _poisoned(_redis, down=_SILENT, answers=20), SHARED),
    Fault("redis-cut-often", _cut_often(_redis), SHARED),
    Fault("replicas-redis-mute", _poisoned(_redis, down=_SILENT, answers=20), REPLICAS, is_short=True),
    Fault("replicas-redis-cut-often", _cut_often(_redis), REPLICAS),
)  # fmt: skip
