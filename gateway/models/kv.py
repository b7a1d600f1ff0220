"""KV cache: bytes per token from a model's shape, and what one request holds.

Decided here: the arithmetic of vLLM 0.32.0's cache specs (FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec,
MambaSpec), of a whole model or of one tensor-parallel rank's share. Not decided here: a model's shape
(`checkpoints.toml`, or its own config.json through `hub`) and what a budget allows.
Elements are 2 bytes (bf16) unless told otherwise (fp8: 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

DEFAULT_BLOCK_TOKENS: Final = 16  # vLLM's and SGLang's page where nothing else is known
BF16_BYTES: Final = 2
# The convolution state is kept in the model's dtype, the recurrent one in float32 (config `mamba_ssm_dtype`).
RECURRENT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class WindowLayers:
    """Layers that keep only the last `window_tokens` tokens (sliding window or chunked attention)."""

    layers: int
    kv_heads: int
    head_dim: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class LinearLayers:
    """Gated-delta-net layers: a fixed state per sequence instead of KV. `conv_width` is the kernel in tokens."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int

    @property
    def state_bytes(self) -> int:
        """Bytes of one sequence's state in one layer (vLLM's `gated_delta_net_state_shape`)."""
        channels = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
        convolution = (self.conv_width - 1) * channels * BF16_BYTES
        return convolution + self.value_heads * self.key_dim * self.value_dim * RECURRENT_BYTES


@dataclass(frozen=True, slots=True)
class CrossLayers:
    """Cross-attention layers: KV per encoder token, none per text token."""

    layers: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class KvShape:
    """What a model's layers keep. `full_layers` grow with every token; `latent_dim` means MLA (one latent, no pair).

    For MLA `kv_heads` and `head_dim` are not used. Layers that share another layer's KV are not counted.
    """

    full_layers: int
    kv_heads: int
    head_dim: int
    window_layers: tuple[WindowLayers, ...] = ()
    latent_dim: int | None = None
    linear: LinearLayers | None = None
    cross: CrossLayers | None = None


def growing_bytes_per_token(shape: KvShape, *, element_bytes: int = BF16_BYTES) -> int:
    """Bytes that each further token takes however long the sequence already is: the full-attention layers."""
    return shape.full_layers * _layer_bytes_per_token(shape, element_bytes)


def window_bytes_per_token(shape: KvShape, *, element_bytes: int = BF16_BYTES) -> int:
    """Bytes per token in the windowed layers, until their windows are full."""
    return sum(_pair_bytes(w.layers, w.kv_heads, w.head_dim, element_bytes) for w in shape.window_layers)


def bytes_per_token(shape: KvShape, *, element_bytes: int = BF16_BYTES) -> int:
    """Bytes that one token of a short sequence takes in all layers: full attention and windows together."""
    growing = growing_bytes_per_token(shape, element_bytes=element_bytes)
    return growing + window_bytes_per_token(shape, element_bytes=element_bytes)


def window_limit_bytes(shape: KvShape, *, element_bytes: int = BF16_BYTES) -> int:
    """What the windowed layers hold once every window is full, without the block being filled."""
    return sum(
        _pair_bytes(w.layers, w.kv_heads, w.head_dim, element_bytes) * w.window_tokens for w in shape.window_layers
    )


def state_bytes_per_sequence(shape: KvShape) -> int:
    """The linear layers' state of one sequence, before it is padded to pages."""
    return 0 if shape.linear is None else shape.linear.layers * shape.linear.state_bytes


def bytes_per_encoder_token(shape: KvShape, *, element_bytes: int = BF16_BYTES) -> int:
    """Bytes per image embedding in cross-attention layers; 0 where images stand among the text tokens."""
    if shape.cross is None:
        return 0
    return _pair_bytes(shape.cross.layers, shape.cross.kv_heads, shape.cross.head_dim, element_bytes)


def block_tokens(shape: KvShape, *, element_bytes: int = BF16_BYTES, page_tokens: int = DEFAULT_BLOCK_TOKENS) -> int:
    """Tokens per block: vLLM raises a hybrid model's page until one attention page holds one layer's state."""
    if shape.linear is None:
        return page_tokens
    page_bytes = page_tokens * _layer_bytes_per_token(shape, element_bytes)
    return page_tokens * -(-shape.linear.state_bytes // page_bytes)


def request_kv_tokens(prompt_tokens: int, output_tokens: int, block_tokens: int = DEFAULT_BLOCK_TOKENS) -> int:
    """Tokens charged to a request: prompt and output reserve (>= 0), rounded up to whole blocks (>= 1)."""
    if prompt_tokens < 0 or output_tokens < 0 or block_tokens < 1:
        raise ValueError(f"not a token count: {prompt_tokens=} {output_tokens=} {block_tokens=}")
    return -(-(prompt_tokens + output_tokens) // block_tokens) * block_tokens


def request_kv_bytes(
    shape: KvShape,
    prompt_tokens: int,
    output_tokens: int,
    *,
    encoder_tokens: int = 0,
    element_bytes: int = BF16_BYTES,
    page_tokens: int | None = None,
) -> int:
    """Bytes one request holds at its longest. `page_tokens` overrides the block size where the backend told it.

    Each linear layer's state is padded to one page; a windowed layer holds at most its window and one more block.
    """
    block = block_tokens(shape, element_bytes=element_bytes) if page_tokens is None else page_tokens
    charged = request_kv_tokens(prompt_tokens, output_tokens, block)
    held = charged * growing_bytes_per_token(shape, element_bytes=element_bytes)
    for window in shape.window_layers:
        limit = request_kv_tokens(window.window_tokens, 0, block) + block
        pair = _pair_bytes(window.layers, window.kv_heads, window.head_dim, element_bytes)
        held += pair * min(charged, limit)
    if shape.linear is not None:
        page_bytes = block * _layer_bytes_per_token(shape, element_bytes)
        held += shape.linear.layers * max(page_bytes, shape.linear.state_bytes)
    return held + encoder_tokens * bytes_per_encoder_token(shape, element_bytes=element_bytes)


def tensor_share(shape: KvShape, ranks: int) -> KvShape:
    """What one of ``ranks`` (>= 1) tensor-parallel workers keeps: KV heads are split, and below one each replicated.

    An MLA latent is replicated on every rank; linear layers split their heads. Source: vLLM 0.32.0,
    ``ModelConfig.get_num_kv_heads`` and ``gated_delta_net_state_shape``.
    """
    if ranks < 1:
        raise ValueError(f"ranks must be at least 1, not {ranks}")

    def share(heads: int) -> int:
        return max(1, heads // ranks)

    linear = shape.linear
    if linear is not None:
        linear = replace(linear, key_heads=share(linear.key_heads), value_heads=share(linear.value_heads))
    return replace(
        shape,
        kv_heads=shape.kv_heads if shape.latent_dim is not None else share(shape.kv_heads),
        window_layers=tuple(replace(window, kv_heads=share(window.kv_heads)) for window in shape.window_layers),
        linear=linear,
        cross=None if shape.cross is None else replace(shape.cross, kv_heads=share(shape.cross.kv_heads)),
    )


def _pair_bytes(layers: int, kv_heads: int, head_dim: int, element_bytes: int) -> int:
    """Bytes per token of a key and a value in each layer."""
    return 2 * layers * kv_heads * head_dim * element_bytes


def _layer_bytes_per_token(shape: KvShape, element_bytes: int) -> int:
    if shape.latent_dim is not None:
        return shape.latent_dim * element_bytes
    return _pair_bytes(1, shape.kv_heads, shape.head_dim, element_bytes)
