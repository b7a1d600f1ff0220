"""Rough compute: FLOPs of the vision tower and of the prefill, for ranking backends.

Decided here: the closed formulas. Not decided here: milliseconds (what a backend does per second is observed, not
computed) and how routing weighs them. Two FLOPs per multiply-add; magnitudes agree with published profiles within a
few per cent, which is all that an *expected* time to first token needs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """A vision tower. `window_patches` = 0: every layer attends to all patches; else only `full_layers` of them do."""

    layers: int
    hidden: int
    mlp: int
    gated: bool
    out_hidden: int
    merge: int
    full_layers: int
    window_patches: int = 0


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A language model. `active_parameters` are those one token passes; `attention_layers` have the quadratic term."""

    active_parameters: int
    attention_layers: int
    heads: int
    head_dim: int


def encoder_flops(shape: EncoderShape, patches: int) -> int:
    """FLOPs of one image of `patches` patches: projections and MLPs, attention, and the merger's two matrices.

    Attention is 4 x patches x span x hidden per layer, the span being all patches or one window.
    """
    if patches < 0:
        raise ValueError(f"patches must not be negative: {patches}")
    matrices = (3 if shape.gated else 2) * shape.hidden * shape.mlp + 4 * shape.hidden**2
    dense = 2 * patches * shape.layers * matrices
    windowed = shape.layers - shape.full_layers
    span = shape.full_layers * patches + windowed * min(patches, shape.window_patches)
    attention = 4 * patches * span * shape.hidden
    merged = shape.hidden * shape.merge**2
    merger = 2 * (patches // shape.merge**2) * (merged * merged + merged * shape.out_hidden)
    return dense + attention + merger


def prefill_flops(shape: DecoderShape, prompt_tokens: int, *, cached_tokens: int = 0) -> int:
    """FLOPs of a causal prefill of `prompt_tokens`, of which a cached prefix is not computed again.

    The dense part is linear in what is computed; attention is 2 x layers x heads x head_dim x (T^2 - cached^2).
    """
    if not 0 <= cached_tokens <= prompt_tokens:
        raise ValueError(f"cached_tokens {cached_tokens} is not within 0..{prompt_tokens}")
    computed = prompt_tokens - cached_tokens
    quadratic = prompt_tokens**2 - cached_tokens**2
    attention = 2 * shape.attention_layers * shape.heads * shape.head_dim * quadratic
    return 2 * shape.active_parameters * computed + attention
