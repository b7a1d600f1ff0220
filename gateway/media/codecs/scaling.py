"""By how much a decoder may shrink a picture while it decodes. Pure, and read by the loop to predict a job's memory.

Only by 1/2 and 1/4: the odd eighths of JPEG have no SIMD (slower than a full decode) and shift the picture. Measured
against a full decode and one bicubic resize, over photographs, text and screens: twice the target left on both sides
46 dB and more, one and a half times 42.7 dB and more, both less than the output's own encoding loses.
"""

from __future__ import annotations

from gateway.types import Fidelity, ImagePlan, Probe, Size

_SHRINKS = (4, 2)
# The sides that must be left, in quarters of the target's.
_MARGIN_QUARTERS = {Fidelity.EXACT: 8, Fidelity.FAST: 6}


def stored_target(probe: Probe, plan: ImagePlan) -> Size:
    """The plan's upright target as the file stores the picture."""
    target = plan.target
    return Size(target.height, target.width) if probe.orientation >= 5 else target


def pixels_needed(target: Size, fidelity: Fidelity) -> Size:
    """The least size that must be decoded so that the resampler loses nothing of this class."""
    quarters = _MARGIN_QUARTERS[fidelity]
    return Size(-(-target.width * quarters // 4), -(-target.height * quarters // 4))


def shrink_for(raster: Size, at_least: Size) -> int:
    """By how much (1, 2 or 4) a decoder may shrink so that ``at_least`` remains."""
    for shrink in _SHRINKS:
        if raster.width >= shrink * at_least.width and raster.height >= shrink * at_least.height:
            return shrink
    return 1


def shrunk(raster: Size, shrink: int) -> Size:
    """What a decoder delivers then: parts of a pixel are rounded up."""
    return Size(-(-raster.width // shrink), -(-raster.height // shrink))
