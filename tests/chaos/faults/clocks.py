"""The wall clock jumps, of a gateway or of Redis, forwards and back: nothing may wait by it."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.fleet import REPLICAS
from tests.chaos.run import Fault, Strike

_HOUR_S = 3600.0
_YEARS_S = 8 * 365 * 24 * _HOUR_S


def _jump(*offsets_s: float, who: str) -> Callable[[Strike], None]:
    """One after the other; the load goes on through all of them, and back to the right time at the end."""

    def strike_them(strike: Strike) -> None:
        for offset_s in offsets_s:
            strike.fleet.clocks[who].jump(offset_s)
            strike.answers(20)
        strike.fleet.clocks[who].jump(0.0)
        strike.answers(10)

    return strike_them


FAULTS = (
    Fault("clock-of-a-gateway-jumps", _jump(_HOUR_S, -_HOUR_S, _YEARS_S, who="gateway-1"), REPLICAS),
    Fault("clock-of-redis-forward", _jump(_HOUR_S, who="redis"), REPLICAS),
    Fault("clock-of-redis-back", _jump(-_HOUR_S, who="redis"), REPLICAS, is_short=True),
)
