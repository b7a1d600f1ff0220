"""Text tokens where no tokenizer is configured: an estimate with bounds, and what it learns from usage.

Decided here: how bytes become an expected count, what can be said for certain, and how a ratio is learnt as a pure
fold. Not decided here: exact counts (they need the model's own tokenizer), which bound is used for what (budgets take
the upper one, refusals only the lower one). Image payloads are never text: the caller counts the bytes that the chat
template will see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from gateway.types.per_request import per_request

# English prose in byte-level BPE vocabularies of 128k to 250k entries; the seed until usage has been seen.
SEED_BYTES_PER_TOKEN: Final = 4.0
# Source code, JSON with numbers and scripts with few merges are this dense; digits alone are denser (one each).
DENSE_BYTES_PER_TOKEN: Final = 2.0
# A text this short may be nothing but digits; beyond it the dense ratio holds for the rest.
DENSE_HEAD_BYTES: Final = 128
# No entry of the vocabularies in use is longer (the longest are runs of 128 blanks or dashes), with room to spare.
LONGEST_TOKEN_BYTES: Final = 256
LEARNING_RATE: Final = 0.05
# Fewer bytes say more about the template's tokens than about the text.
LEARNABLE_BYTES: Final = 200


@per_request(frozen=True, slots=True)
class TextEstimate:
    """Tokens of a text: the expected count, what it cannot fall below, and what it will hardly exceed."""

    expected: int
    lower_bound: int
    upper_bound: int


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Tokens that a chat template adds: per message, once per request, and where no system message is given."""

    per_message_tokens: int
    per_request_tokens: int
    default_system_tokens: int = 0

    def overhead_tokens(self, message_count: int, *, has_system: bool = False) -> int:
        """All tokens around `message_count` messages, the opening of the answer included. The count is >= 0."""
        added = 0 if has_system else self.default_system_tokens
        return message_count * self.per_message_tokens + self.per_request_tokens + added


def estimate_text_tokens(
    byte_count: int, bytes_per_token: float, *, dense_bytes_per_token: float = DENSE_BYTES_PER_TOKEN
) -> TextEstimate:
    """Tokens of `byte_count` UTF-8 bytes of text at `bytes_per_token` (> 0). Raises `ValueError` outside that.

    The lower bound is certain: a request may be refused on it. The upper bound holds for ordinary text of any script
    and never exceeds one token per byte, which a byte-level vocabulary cannot pass.
    """
    if byte_count < 0 or not bytes_per_token > 0 or not dense_bytes_per_token > 0:
        raise ValueError(f"not an estimable text: {byte_count=} {bytes_per_token=} {dense_bytes_per_token=}")
    expected = min(byte_count, ceil(byte_count / bytes_per_token))
    head = min(byte_count, DENSE_HEAD_BYTES)
    dense = head + ceil((byte_count - head) / dense_bytes_per_token)
    upper = min(byte_count, max(dense, expected))
    return TextEstimate(expected, lower_bound=-(-byte_count // LONGEST_TOKEN_BYTES), upper_bound=upper)


@per_request(frozen=True, slots=True)
class RatioLearner:
    """What usage has taught about one model's bytes per token. A fold: `update` returns the next state.

    `bytes_per_token` follows the traffic slowly; `dense_bytes_per_token` drops at once to the densest text seen and
    relaxes slowly back, so that the upper bound covers what this deployment really sends.
    """

    bytes_per_token: float = SEED_BYTES_PER_TOKEN
    dense_bytes_per_token: float = DENSE_BYTES_PER_TOKEN
    samples: int = 0

    def update(self, byte_count: int, text_tokens: int) -> RatioLearner:
        """Learn from one response: its text bytes and its prompt tokens less images and template.

        Too short a text, or a count no byte-level vocabulary can give, teaches nothing.
        """
        if byte_count < LEARNABLE_BYTES or not byte_count >= text_tokens > 0:
            return self
        if byte_count > text_tokens * LONGEST_TOKEN_BYTES:
            return self
        seen = byte_count / text_tokens
        # Early samples weigh more: a plain mean until the learning rate takes over.
        rate = max(LEARNING_RATE, 1 / (self.samples + 1))
        relaxed = self.dense_bytes_per_token + LEARNING_RATE * (DENSE_BYTES_PER_TOKEN - self.dense_bytes_per_token)
        return replace(
            self,
            bytes_per_token=self.bytes_per_token + rate * (seen - self.bytes_per_token),
            dense_bytes_per_token=min(relaxed, seen),
            samples=self.samples + 1,
        )

    def estimate(self, byte_count: int) -> TextEstimate:
        """`estimate_text_tokens` with what has been learnt."""
        return estimate_text_tokens(byte_count, self.bytes_per_token, dense_bytes_per_token=self.dense_bytes_per_token)
