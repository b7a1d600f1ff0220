"""What a soak may show, in one place, with the reasons.

Memory is judged by the robust slope (Theil-Sen) of anonymous resident memory after a warm-up: shared memory is touched
once and stays, the files of libraries come and go. A slope has an error of its own that falls with the time it is
watched, since allocators round up and give back in steps: hence a bound for each length. What a bound lets pass at the
18 acts a second of this traffic: 3 MiB a minute are 3 KB an act, a tenth of the smallest prepared image; 768 KiB a
minute are 730 bytes, less than the objects of any one request. Measured without a leak, in three minutes: 0.2 MiB a
minute, and 1 MiB where twelve other processes wanted the same two processors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """``*_a_minute`` bound slopes. Latency may not drift (median of a kind in the last third against the first) by more
    than the ratio, on top of what the machine itself became slower, and the seconds: beside a run of the linters and
    type checker of this project medians of 0.1 s become 5 s and go back."""

    gateway_kib_a_minute: float
    workers_kib_a_minute: float
    # What a queue holds open for a while is no leak; a descriptor lost with every tenth refusal would be 15 a minute,
    # and what is open at the end is counted besides.
    descriptors_a_minute: float = 15.0
    threads_a_minute: float = 1.0
    slab_kib_a_minute: float = 16_384.0
    latency_ratio: float = 3.0
    latency_s: float = 10.0
    # Kinds with fewer answers in a third have no median worth a verdict.
    fewest_answers: int = 8
    # What an idle gateway may hold more at the end than before the traffic: a pooled connection to Redis and to either
    # backend, a thread of the executor that was not needed before.
    descriptors_kept: int = 8
    threads_kept: int = 8


SHORT = Bounds(gateway_kib_a_minute=3072, workers_kib_a_minute=6144)
LONG = Bounds(gateway_kib_a_minute=768, workers_kib_a_minute=1536, descriptors_a_minute=3.0)
# From here on a run is judged as a long one.
LONG_MINUTES = 20.0
# What is not judged: caches fill, pools grow to their size.
WARM_UP_SHARE, MOST_WARM_UP_S = 1 / 3, 300.0


def bounds_of(minutes: float) -> Bounds:
    """The bounds for a run of this length."""
    return LONG if minutes >= LONG_MINUTES else SHORT


def warm_up_s(minutes: float) -> float:
    """How long from the start nothing is judged."""
    return min(MOST_WARM_UP_S, 60 * minutes * WARM_UP_SHARE)
