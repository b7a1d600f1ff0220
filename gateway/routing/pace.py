"""How fast one backend computes, as seconds per prompt token and per vision patch, learnt from times to the first
token.

Decided here: the fold of observations. A request that took so long, with so much work ahead of it and of its own, says
how far the expectation was off; both rates move by their share of that (least mean squares, normalised, on logarithms).
Robust on purpose: what one observation says is cut to a factor of e either way (Huber's idea), rates stay within bounds
that no engine leaves, and requests that are too small to tell work from overhead are not listened to. Not decided here:
who observes; the FLOPs behind it (`models.pace`).
"""

from __future__ import annotations

import math

from gateway.types.per_request import per_request

# Below this much work a first token's time is network and scheduling: some 10 ms on any engine.
LEAST_TOKENS, LEAST_PATCHES = 512, 1_024
# From a rack that prefills ten million tokens a second to a laptop; encoders likewise.
PREFILL_BOUNDS_S = 1e-7, 1e-1
ENCODE_BOUNDS_S = 1e-8, 1e-2
_FIRST_WEIGHT, _LEAST_WEIGHT = 0.5, 0.1
_LOG_LIMIT = 1.0
# A part that is less than this share of the expected time says nothing about its own rate.
_LEAST_SHARE = 0.1


@per_request(frozen=True, slots=True)
class TokenPace:
    """One backend's two rates; ``samples`` 0 = nothing observed yet. A fold: ``learn`` returns the next state."""

    prefill_s_per_token: float
    encode_s_per_patch: float
    samples: int = 0

    def expected_s(self, tokens: int, patches: int) -> float:
        """How long so much work takes."""
        return tokens * self.prefill_s_per_token + patches * self.encode_s_per_patch

    def learn(self, tokens: int, patches: int, seconds: float) -> TokenPace:
        """Take in one first token that came after ``seconds``, behind so much work; not from what cannot be."""
        if (tokens < LEAST_TOKENS and patches < LEAST_PATCHES) or not 0 < seconds < math.inf:
            return self
        prefill_s, encode_s = tokens * self.prefill_s_per_token, patches * self.encode_s_per_patch
        expected_s = prefill_s + encode_s
        off = max(-_LOG_LIMIT, min(_LOG_LIMIT, math.log(seconds / expected_s)))
        step = off * max(_LEAST_WEIGHT, _FIRST_WEIGHT / (1 + self.samples / 16))
        prefill_share, encode_share = prefill_s / expected_s, encode_s / expected_s
        step /= prefill_share**2 + encode_share**2  # so that both together move the expectation by the step
        return TokenPace(
            _moved(self.prefill_s_per_token, step, prefill_share, PREFILL_BOUNDS_S),
            _moved(self.encode_s_per_patch, step, encode_share, ENCODE_BOUNDS_S),
            self.samples + 1,
        )


def _moved(rate: float, step: float, share: float, bounds: tuple[float, float]) -> float:
    if share < _LEAST_SHARE:
        return rate
    return max(bounds[0], min(bounds[1], rate * math.exp(step * share)))
