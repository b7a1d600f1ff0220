"""Rates by the generic cell rate algorithm (ITU-T I.371, annex A), in whole microseconds.

A bucket is one number, its *theoretical arrival time* ``tat_us``: the moment at which everything charged so far will
have drained. What stands in the bucket at ``now`` is ``max(0, tat - now)``. An amount is turned into the time that the
rate needs to drain it, and from there on there is only adding, subtracting, comparing:

    cost     = ceil(amount * period / rate)       capacity = floor(burst * period / rate)
    charge     tat' = max(tat, now) + cost        passes where tat' - now <= capacity, else waits tat' - now - capacity
    correct  + tat' = max(tat, now) + extra       never refused: a debt that later charges wait for
    correct  - tat' = tat - min(surplus, max(0, charged_tat - now))
    expect     full again in max(0, tat - now)    remaining = floor((capacity - max(0, tat - now)) * rate / period)

``charged_tat`` is what ``tat`` became by the charge that is corrected: once that moment is past, everything that stood
in the bucket then has drained, the surplus with it, and what has drained is not given back. What is given back was
charged and not used, so the long-run rate always holds; a burst may exceed the capacity by what open charges were
estimated too high.

Costs and capacities are computed here, with integers of any size, and capped; a script in a shared store gets them as
numbers and does the rest. Microseconds since 1970 are below 2^51 until 2041 and no sum exceeds 2^53, so a script that
counts in doubles (Lua) agrees to the bit. Rounding a cost up limits a bucket to 10^6 charges a second.
"""

from __future__ import annotations

from dataclasses import dataclass

MICROSECONDS = 1_000_000
# A debt of a year is as good as any larger one, and keeps every sum exact in a double.
MAX_US = 365 * 86_400 * MICROSECONDS


@dataclass(frozen=True, slots=True)
class Rate:
    """``amount`` in every ``period_s``; ``burst`` of it may come at once (None: all of it).

    ``amount`` and ``burst`` are in whole units of whatever is counted, at least 1.
    """

    amount: int
    period_s: int
    burst: int | None = None

    @property
    def burst_amount(self) -> int:
        """What an untouched bucket admits at once."""
        return self.amount if self.burst is None else self.burst

    @property
    def capacity_us(self) -> int:
        return min(self.burst_amount * self.period_s * MICROSECONDS // self.amount, MAX_US)


def cost_us(amount: int, rate: Rate) -> int:
    """The time in which the rate allows ``amount``, rounded up; at most MAX_US."""
    return min(-(-amount * rate.period_s * MICROSECONDS // rate.amount), MAX_US)


def charged(tat_us: int, now_us: int, charge_us: int) -> int:
    """The bucket after a charge (or an extra) of ``charge_us``."""
    return max(tat_us, now_us) + charge_us


def wait_us(charged_tat_us: int, now_us: int, capacity_us: int) -> int:
    """How long a charge that would lead to this bucket must wait; 0 where it passes."""
    return max(0, charged_tat_us - now_us - capacity_us)


def refunded(tat_us: int, charged_tat_us: int, now_us: int, surplus_us: int) -> int:
    """The bucket after giving back what was charged too much, as far as it has not drained."""
    return tat_us - min(surplus_us, max(0, charged_tat_us - now_us))


def remaining(tat_us: int, now_us: int, rate: Rate) -> int:
    """What would be admitted at this moment, in units; 0 in debt."""
    free_us = rate.capacity_us - max(0, tat_us - now_us)
    return max(0, free_us * rate.amount // (rate.period_s * MICROSECONDS))


def reset_us(tat_us: int, now_us: int) -> int:
    """How long until the bucket is as if untouched."""
    return max(0, tat_us - now_us)
