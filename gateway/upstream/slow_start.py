"""How large a share of its usual load a backend that has just come back may get: a factor that grows over a window.

A restarted engine has empty caches, kernels to compile and no prefix to reuse; given its full share at once it makes a
queue of everything. The factor grows linearly with time from a tenth, Envoy's slow start with its defaults
(``aggression`` 1, ``min_weight_percent`` 10). Routing reads it as ``BackendView.ramp``. Pure: time is an argument.
"""

from __future__ import annotations

LEAST = 0.1


def ramp(age_s: float | None, window_s: float) -> float:
    """The factor in [LEAST, 1]; ``age_s`` since it joined, ``None``: always there. Window 0: at once."""
    if age_s is None or age_s >= window_s:
        return 1.0
    return max(LEAST, age_s / window_s)
