"""By how much a decoder may shrink a picture while it decodes. Pure, and read by the loop to predict a job's memory.

Only by 1/2 and 1/4: the odd eighths of JPEG have no SIMD (slower than a full decode) and shift the picture. How much
must be left was measured against a full decode and one bicubic resize, over photographs, pages of text and screens as
JPEG 90 (worst of each): a half with twice the target left 46 dB, with one and a half times 40; a quarter, whose four
samples a block are rougher, with two and a half times 45, with twice 41. Noise and patterns of one pixel lose more.
"""

from __future__ import annotations

from types import MappingProxyType

from gateway.types import Fidelity, ImagePlan, Probe, Size

# By how much, and the sides that must be left then, in quarters of the target's.
_MARGIN_QUARTERS = MappingProxyType({Fidelity.EXACT: ((4, 10), (2, 8)), Fidelity.FAST: ((4, 8), (2, 6))})
_SHRINKS = (4, 2)
# What is left for measuring detail: engines' usual caps are about as many.
_MEASURED_PIXELS = 1_000_000


def stored_target(probe: Probe, plan: ImagePlan) -> Size:
    """The plan's upright target as the file stores the picture."""
    target = plan.target
    return Size(target.height, target.width) if probe.orientation >= 5 else target


def pixels_needed(raster: Size, target: Size, fidelity: Fidelity) -> Size:
    """The least size that may be decoded so that the resampler loses no more than this class allows."""
    for shrink, quarters in _MARGIN_QUARTERS[fidelity]:
        parts = shrink * quarters
        if 4 * raster.width >= parts * target.width and 4 * raster.height >= parts * target.height:
            return shrunk(raster, shrink)
    return raster


def shrink_for(raster: Size, at_least: Size) -> int:
    """By how much (1, 2 or 4) a decoder may shrink so that ``at_least`` remains."""
    for shrink in _SHRINKS:
        left = shrunk(raster, shrink)
        if left.width >= at_least.width and left.height >= at_least.height:
            return shrink
    return 1


def shrunk(raster: Size, shrink: int) -> Size:
    """What a decoder delivers then: parts of a pixel are rounded up."""
    return Size(-(-raster.width // shrink), -(-raster.height // shrink))


def measured_shrink(raster: Size) -> int:
    """By how much (1, 2, 4 or 8) a picture is shrunk for measuring its detail."""
    return next((shrink for shrink in (8, 4, 2) if raster.pixels >= _MEASURED_PIXELS * shrink * shrink), 1)
