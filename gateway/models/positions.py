"""Positions: how far a prompt advances the model's position counter (M-RoPE), as opposed to how many tokens it has.

Decided here: the sum over text, images and clips. Not decided here: what one image or clip advances by (its family,
`video`). A context's limit counts tokens, not positions; the position matters to whoever continues a sequence.
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.models.video import VideoTokens
from gateway.types import ImageTokens


def next_position(text_tokens: int, media: Iterable[ImageTokens | VideoTokens]) -> int:
    """The position of the token after a prompt that starts at 0. ``text_tokens`` are all that are no embeddings."""
    return text_tokens + sum(medium.position_advance for medium in media)


def position_delta(media: Iterable[ImageTokens | VideoTokens]) -> int:
    """What vLLM calls ``mrope_position_delta``: next position less the sequence's length; never above 0 for images."""
    return sum(medium.position_advance - medium.tokens for medium in media)
