"""How fast a backend computes: from FLOPs to milliseconds, learnt from the time to the first token.

Decided here: the fold of observations into two rates. Not decided here: the FLOPs (`cost`), and who observes. A request
that waited in the engine's queue looks like slow arithmetic, never like fast, so a rate rises quickly and falls slowly.

Seeds are one H100's, as published profiles have it: a 70B model on four of them prefills 100 tokens in about 2 ms,
2,100 in 40 and 8,500 in 160; one image takes SigLIP-400M about 5 ms and InternViT-6B about 50.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

SEED_PREFILL_FLOPS_PER_S: Final = 1.85e15
SEED_ENCODE_FLOPS_PER_S: Final = 1.9e14
_RISE: Final = 0.3
_FALL: Final = 0.02
# One observation is never believed to be further off than this.
_LIMIT: Final = 8.0
# A part that is less than this share of the expected time says nothing about its own rate.
_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates in FLOPs a second over all GPUs of a backend. A fold: `update` returns the next state."""

    prefill_flops_per_s: float = SEED_PREFILL_FLOPS_PER_S
    encode_flops_per_s: float = SEED_ENCODE_FLOPS_PER_S
    samples: int = 0

    def prefill_ms(self, flops: int) -> float:
        """Milliseconds to compute a prompt."""
        return 1000 * flops / self.prefill_flops_per_s

    def encode_ms(self, flops: int) -> float:
        """Milliseconds to encode images."""
        return 1000 * flops / self.encode_flops_per_s

    def update(self, prefill_flops: int, encode_flops: int, seconds: float) -> Pace:
        """Learn from one first token that took so long. What cannot be is not learnt from."""
        prefill_ms, encode_ms = self.prefill_ms(prefill_flops), self.encode_ms(encode_flops)
        expected_ms = prefill_ms + encode_ms
        if not 0 < seconds < float("inf") or expected_ms <= 0:
            return self
        faster = min(max(expected_ms / (1000 * seconds), 1 / _LIMIT), _LIMIT)
        # The first observations place the rate, whichever way; later ones adjust it.
        weight = max(_RISE if faster > 1 else _FALL, 1 / (self.samples + 1))
        return replace(
            self,
            prefill_flops_per_s=self.prefill_flops_per_s * _step(faster, weight, prefill_ms / expected_ms),
            encode_flops_per_s=self.encode_flops_per_s * _step(faster, weight, encode_ms / expected_ms),
            samples=self.samples + 1,
        )


def _step(faster: float, weight: float, share: float) -> float:
    return 1.0 if share < _SHARE else float(faster ** (weight * share))
