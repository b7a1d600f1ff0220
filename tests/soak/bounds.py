"""What a soak may show, in one place, with the reasons.

Memory is judged by the robust slope (Theil-Sen) of anonymous resident memory after a warm-up: shared memory is touched
once and stays, the files of libraries come and go. A slope has an error of its own that falls with the time it is
watched, since allocators round up and give back in steps: hence a bound for each length. What a bound lets pass at the
18 acts a second of this traffic: 3 MiB a minute are 3 KB an act, a tenth of the smallest prepared image; 256 KiB a
minute are 240 bytes, less than the objects of any one request. Measured without a leak, in three minutes: 0.2 MiB a
minute, and 1 MiB where twelve other processes wanted the same two processors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """``*_a_minute`` bound slopes. Latency may not drift (median of a kind in the last third against the first) by more
    than the ratio, on top of what the machine itself became slower, and the seconds: machines of CI are shared, and do
    other work in one third."""

    gateway_kib_a_minute: float
    workers_kib_a_minute: float
    descriptors_a_minute: float = 1.0
    threads_a_minute: float = 1.0
    slab_kib_a_minute: float = 1024.0
    latency_ratio: float = 3.0
    latency_s: float = 0.25
    # Kinds with fewer answers in a third have no median worth a verdict.
    fewest_answers: int = 8
    # What an idle gateway may hold more at the end than before the traffic: a pooled connection to Redis and to either
    # backend, a thread of the executor that was not needed before.
    descriptors_kept: int = 8
    threads_kept: int = 8


SHORT = Bounds(gateway_kib_a_minute=3072, workers_kib_a_minute=6144)
LONG = Bounds(gateway_kib_a_minute=256, workers_kib_a_minute=768)
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
