"""How long a request would wait for a budget, and what to tell a client that shall come back.

By Little's law a full budget drains at (tokens in flight) / (mean time a token is held) tokens per second. That rate is
observed from ended reservations, weighted by their tokens, the recent ones counting more. Waiting for ``need`` tokens
to be freed therefore takes need x hold / in flight. It is a mean: a single huge reservation frees its tokens at once.
"""

from __future__ import annotations

import math

_DECAY = 0.95  # about the last twenty ended reservations decide
_MIN_RETRY_S = 1.0
MAX_RETRY_S = 60.0
_MAX_JITTER_S = 15.0
_JITTER_SHARE = 0.25


class HoldTime:
    """The token-weighted mean time for which reservations are held, recent ones counting more."""

    def __init__(self) -> None:
        self._token_seconds = 0.0
        self._tokens = 0.0

    def observe(self, kv_tokens: int, held_s: float) -> None:
        self._token_seconds = self._token_seconds * _DECAY + kv_tokens * held_s
        self._tokens = self._tokens * _DECAY + kv_tokens

    @property
    def mean_s(self) -> float | None:
        """None until something was held for a measurable number of tokens."""
        return self._token_seconds / self._tokens if self._tokens > 0 else None


def expected_wait_s(need: float, in_flight: float, hold_s: float | None) -> float | None:
    """Seconds until ``need`` is freed; None where nothing was observed that could tell."""
    if need <= 0:
        return 0.0
    if hold_s is None or in_flight <= 0:
        return None
    return need * hold_s / in_flight


def retry_after_s(wait_s: float, jitter: float, *, most_s: float = MAX_RETRY_S) -> float:
    """What to tell the client: the expected wait within 1 s and ``most_s``, longer by ``jitter`` in [0, 1).

    The spread, a quarter but no more than 15 s, keeps clients that were refused together from coming back together.
    """
    bounded = min(max(wait_s, _MIN_RETRY_S), most_s)
    if not math.isfinite(bounded):
        bounded = most_s
    return bounded + min(_JITTER_SHARE * bounded, _MAX_JITTER_S) * jitter
