"""Whether something grows: the slope of a line through samples, robust against single jumps. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

_MOST_SAMPLES = 200


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """The median slope between all pairs of samples (Theil 1950, Sen 1968); 0 for fewer than three."""
    thinned = samples[:: max(1, len(samples) // _MOST_SAMPLES)]
    slopes = [
        (value - earlier) / (at - before)
        for index, (at, value) in enumerate(thinned)
        for before, earlier in thinned[:index]
        if at != before
    ]
    return median(slopes) if len(thinned) > 2 else 0.0
