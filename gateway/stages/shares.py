"""How a policy's caps fall on the images of one request: each image's own, and its share of what all have together.

Decided here: which caps meet on an image, what asks how far below them its detail lets it go, and the common cap under
a limit on all pixels. Not decided here: the limits (``policy``), sizes and prices (``models``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.models.caps import Caps
from gateway.models.detail import adapted_pixels
from gateway.policy.effective import Adaptive, Geometry, RuleValues, Several
from gateway.policy.mappings import step_at
from gateway.policy.rules.detail import detail_pixels
from gateway.types import Call, ImagePart, SourceFacts


def own_caps(values: RuleValues, call: Call) -> list[Caps]:
    """The caps of every image by itself: the policy's, and what the client's ``detail`` is worth there."""
    side = step_at(values.max_side, len(call.images)) if values.max_side else None
    if not values.detail:
        return [Caps(values.max_pixels, side)] * len(call.images)
    return [Caps(_pixels(values, image), side) for image in call.images]


def _pixels(values: RuleValues, image: ImagePart) -> int | None:
    given = [cap for cap in (values.max_pixels, detail_pixels(values, image.detail)) if cap is not None]
    return min(given, default=None)


def measured_above(values: RuleValues) -> int | None:
    """Images of more pixels have their detail measured; ``None``: none has."""
    if values.adaptive is None or values.geometry is Geometry.PRESERVE:
        return None
    return values.adaptive.floor_pixels


def adapted(values: RuleValues, facts: Sequence[SourceFacts]) -> list[int | None]:
    """The pixels that suffice for what each image shows, where the policy asks and the image was measured."""
    knobs = values.adaptive
    if knobs is None:
        return [None] * len(facts)
    return [_sufficient(values, knobs, fact) for fact in facts]


def _sufficient(values: RuleValues, knobs: Adaptive, fact: SourceFacts) -> int | None:
    """Only the first frame was measured: frames of an animation keep one size, and so their caps."""
    if fact.detail is None or (fact.probe.frames > 1 and values.animated.how is Several.MANY):
        return None
    return adapted_pixels(
        fact.detail,
        fact.probe.raster.pixels,
        floor_pixels=knobs.floor_pixels,
        halving_psnr_db=knobs.halving_psnr_db,
    )


def common_cap(pixels: Sequence[int], total: int) -> int:
    """The largest cap under which images of so many pixels together keep ``total``; small ones keep all they have.

    0 where ``total`` is less than one pixel for each.
    """
    left = total
    for rank, own in enumerate(sorted(pixels)):
        even = left // (len(pixels) - rank)
        if own > even:
            return even
        left -= own
    return max(pixels, default=0)


def lowered(caps: Sequence[Caps], pixels: Sequence[int], total: int) -> list[Caps]:
    """The caps once images that were planned to so many pixels share ``total``; as they are where it suffices."""
    if sum(pixels) <= total:
        return list(caps)
    most = max(1, common_cap(pixels, total))
    return [replace(cap, pixels=most) if own > most else cap for cap, own in zip(caps, pixels, strict=True)]
