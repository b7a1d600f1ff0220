"""What every plan promises, asked of families that resize to a grid or a square; their own test files say of which."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import keeps_aspect
from gateway.types import Size

SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 300), st.integers(1, 3_000))
SIZES = st.builds(Size, SIDES, SIDES)
CAPS = st.one_of(st.none(), st.integers(1, 20_000_000), st.integers(1, 200_000))
TOKEN_CAPS = st.one_of(st.none(), st.integers(1, 17_000), st.integers(1, 300))
MORE = st.one_of(st.integers(1, 50), st.integers(1, 1_000_000))


def plan(size: Size, checkpoint: Checkpoint, pixels: int | None = None, tokens: int | None = None) -> Target:
    return family_of(checkpoint.family).plan(size, checkpoint, cap_pixels=pixels, cap_tokens=tokens)


def is_refused(size: Size, checkpoint: Checkpoint) -> bool:
    """Whether the processor refuses the shape; then every question about it must say so."""
    family = family_of(checkpoint.family)
    try:
        family.engine_size(size, checkpoint)
    except AspectRatioExceeded:
        for question in (family.image_tokens, family.normalised, plan):
            with pytest.raises(AspectRatioExceeded):
                question(size, checkpoint)
        with pytest.raises(AspectRatioExceeded):
            plan(size, checkpoint, 1, 1)
        with pytest.raises(AspectRatioExceeded):
            family.request_tokens([size], checkpoint)
        return True
    return False


def keeps_its_word(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, aspect_of: Size | None = None
) -> None:
    """A plan is priced as the engine would price it, within its caps or unreachable, near the aspect, and holds still.

    `aspect_of` is what the processor takes the image for, where it cuts a long one before anything else.
    """
    family = family_of(checkpoint.family)
    free, target = plan(size, checkpoint), plan(size, checkpoint, pixels, tokens)
    assert free.reached
    assert free.tokens == family.image_tokens(size, checkpoint)
    assert target.tokens == family.image_tokens(target.size, checkpoint)
    assert target.tokens.tokens <= free.tokens.tokens
    assert target.reached is (target.reason is not TargetReason.CAP_UNREACHABLE)
    again = plan(target.size, checkpoint, pixels, tokens)
    assert (again.size, again.tokens) == (target.size, target.tokens)
    if target.reached:
        assert pixels is None or target.size.pixels <= pixels
        assert pixels is None or family.engine_size(target.size, checkpoint).pixels <= pixels
        assert tokens is None or target.tokens.tokens <= tokens
        unit = checkpoint.factor if checkpoint.tiles is None else checkpoint.tiles.side
        assert target.size == size or keeps_aspect(size if aspect_of is None else aspect_of, target.size, unit)


def pays_no_more_for_less(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    """Tokens never grow when a cap shrinks, and what a small cap reaches a larger one reaches."""
    small = plan(size, checkpoint, pixels, tokens)
    if pixels is not None:
        assert small.tokens.tokens <= plan(size, checkpoint, pixels + more, tokens).tokens.tokens
    if tokens is not None:
        large = plan(size, checkpoint, pixels, tokens + more)
        assert small.tokens.tokens <= large.tokens.tokens
        assert small.reached <= large.reached


def is_left_alone(size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None) -> None:
    """What a plan changes the engine's processor does not resize again."""
    family = family_of(checkpoint.family)
    for target in (plan(size, checkpoint), plan(size, checkpoint, pixels, tokens)):
        if target.size != family.normalised(size, checkpoint):
            assert family.engine_size(target.size, checkpoint) == target.size
