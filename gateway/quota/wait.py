"""How long a request would wait for a budget, and what to tell a client that shall come back.

By Little's law a full budget drains at (tokens in flight) / (mean time a token is held) tokens per second. That rate is
observed from ended reservations, weighted by their tokens, the recent ones counting more. Waiting for ``need`` tokens
to be freed therefore takes need x hold / in flight. It is a mean: a single huge reservation frees its tokens at once.
"""

from __future__ import annotations

import math

_DECAY = 0.95  # about the last twenty ended reservations decide
_MIN_RETRY_S = 1.0
_MAX_RETRY_S = 60.0
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


def expected_wait_s(need_kv_tokens: int, inflight_kv_tokens: int, hold_s: float | None) -> float | None:
    """Seconds until ``need_kv_tokens`` are freed; None where nothing was observed that could tell."""
    if need_kv_tokens <= 0:
        return 0.0
    if hold_s is None or inflight_kv_tokens <= 0:
        return None
    return need_kv_tokens * hold_s / inflight_kv_tokens


def retry_after_s(wait_s: float, jitter: float) -> float:
    """What to tell the client: the expected wait within 1 to 60 s, up to a quarter longer by ``jitter`` in [0, 1).

    The spread keeps the clients that were refused together from coming back together.
    """
    bounded = min(max(wait_s, _MIN_RETRY_S), _MAX_RETRY_S)
    if not math.isfinite(bounded):
        bounded = _MAX_RETRY_S
    return bounded * (1 + _JITTER_SHARE * jitter)
