"""How long the imagined accelerator takes. Pure arithmetic; the scheduler does the waiting.

The defaults are of the order of an 8-billion-parameter model on one data-centre card. They are settings for
experiments, not measurements of any engine.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CostModel:
    """`speed` divides every time; 0 means that nothing takes time.

    `encode_ms_per_patch`: vision tower, per patch before merging. `prefill_tokens_per_s`: prompt tokens that no cache
    holds. A decode step takes `1 / decode_tokens_per_s` for one sequence, and `batch_slope` of that more for each
    further sequence in the batch.
    """

    encode_ms_per_patch: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    batch_slope: float
    speed: float

    def encode_s(self, patches: int) -> float:
        return self._scaled(patches * self.encode_ms_per_patch / 1000.0)

    def prefill_s(self, tokens: int) -> float:
        return self._scaled(tokens / self.prefill_tokens_per_s)

    def decode_step_s(self, batch: int) -> float:
        return self._scaled((1.0 + self.batch_slope * max(0, batch - 1)) / self.decode_tokens_per_s)

    def _scaled(self, seconds: float) -> float:
        return seconds / self.speed if self.speed > 0 else 0.0
