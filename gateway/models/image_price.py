"""What one image costs beside its tokens: the KV bytes it holds, its share of the prefill, the work of the encoder.

Decided here: how a price in tokens becomes those three. Not decided here: the tokens (families), the shapes (`kv`,
`cost`), how fast anything computes (`pace`).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.models.checkpoint import Checkpoint
from gateway.models.cost import encoder_flops, prefill_flops
from gateway.models.kv import BF16_BYTES, KvShape, bytes_per_encoder_token, bytes_per_token
from gateway.models.pace import Pace
from gateway.types import ImageTokens


@dataclass(frozen=True, slots=True)
class ImagePrice:
    """``None`` where the checkpoint's shapes are not known."""

    kv_bytes: int | None
    prefill_ms: float | None
    encode_ms: float | None


def image_price(
    tokens: ImageTokens, checkpoint: Checkpoint, pace: Pace, *, element_bytes: int = BF16_BYTES
) -> ImagePrice:
    """The price of one image alone: no text around it, nothing cached, nothing queued."""
    kv, decoder, encoder = checkpoint.kv, checkpoint.decoder, checkpoint.encoder
    among = _in_prompt(tokens, checkpoint)
    return ImagePrice(
        None if kv is None else _kv_bytes(tokens, among, kv, element_bytes),
        None if decoder is None else pace.prefill_ms(prefill_flops(decoder, among)),
        None if encoder is None else pace.encode_ms(encoder_flops(encoder, tokens.vit_patches)),
    )


def _in_prompt(tokens: ImageTokens, checkpoint: Checkpoint) -> int:
    """Prompt positions of an image; its embeddings are none of them where cross-attention layers hold them."""
    is_beside = checkpoint.kv is not None and checkpoint.kv.cross is not None
    return tokens.prompt_tokens - (tokens.tokens if is_beside else 0)


def _kv_bytes(tokens: ImageTokens, among: int, shape: KvShape, element_bytes: int) -> int:
    """What an image holds: among the text tokens, or in cross-attention layers of its own."""
    held = among * bytes_per_token(shape, element_bytes=element_bytes)
    return held + tokens.tokens * bytes_per_encoder_token(shape, element_bytes=element_bytes)
