"""From facts to a plan: what is done to one image, and what it costs before and after.

Decided here: whether an image is passed byte for byte, and otherwise its target size and the list of reasons. Not
decided here: which cap applies (policy and backend say so), how pixels become tokens (the family), how pixels are made
(media).

*Conforming* means: upright, one frame, at most eight bits, opaque, RGB, grey or palette, in a format every engine
takes, each side at least one grid unit, under the cap, and written as a canonical data URL. Conforming images are
untouched whatever their multiple; sizes go to the grid only where an image is changed anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import Undecodable
from gateway.models.buckets import snapped
from gateway.models.caps import Caps, plan_within
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Family, Target, TargetReason
from gateway.types import Change, ColourModel, Fidelity, ImageFormat, ImagePlan, OutputFormat, Probe, Size, SourceFacts

# What vLLM 0.32 and SGLang 0.5.23 both decode without surprises; everything else is delivered as PNG or JPEG.
_KEPT = TargetReason.TOO_SMALL
ENGINE_FORMATS = frozenset({ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.WEBP})


@dataclass(frozen=True, slots=True)
class PlanRules:
    """The policy's part of a plan. ``cap_pixels`` None = only the engine's own cap; ``preserve`` never resizes.

    ``cap_tokens`` is this image's share of a budget, ``cap_side`` bounds its longer side; ``buckets`` are the only
    sizes a resized image should have. ``keeps_tag`` leaves an image alone that only its orientation would change;
    ``to_srgb`` applies embedded colour profiles; ``salvage`` takes files that end too early. ``adapted_pixels`` suffice
    for what the image shows: it goes that far below its caps where that saves tokens.
    """

    cap_pixels: int | None
    background: tuple[int, int, int]
    output: OutputFormat
    jpeg_quality: int
    preserve: bool
    version: str
    cap_tokens: int | None = None
    buckets: tuple[Size, ...] = ()
    fidelity: Fidelity = Fidelity.EXACT
    cap_side: int | None = None
    keeps_tag: bool = False
    to_srgb: bool = False
    salvage: bool = False
    adapted_pixels: int | None = None


def _shape_changes(probe: Probe, rules: PlanRules) -> list[Change]:
    changes = []
    if probe.orientation != 1 and not rules.keeps_tag:
        changes.append(Change.ORIENTATION)
    if probe.frames > 1:
        changes.append(Change.FRAMES)
    if probe.bits_per_sample > 8:
        changes.append(Change.BIT_DEPTH)
    if probe.has_alpha:
        changes.append(Change.ALPHA)
    if probe.colour is ColourModel.CMYK:
        changes.append(Change.COLOUR)
    if probe.format not in ENGINE_FORMATS:
        changes.append(Change.FORMAT)
    if probe.foreign_profile and rules.to_srgb:
        changes.append(Change.PROFILE)
    if not probe.complete:
        changes.append(Change.TRUNCATED)
    return changes


def _target(size: Size, family: Family, checkpoint: Checkpoint, rules: PlanRules) -> Target | None:
    """The planned size, or ``None`` where the image keeps its own."""
    if rules.preserve:
        # Engines fail on sides below one grid unit, so even an untouched geometry is brought up to it.
        served = family.normalised(size, checkpoint)
        return None if served == size else Target(served, family.image_tokens(served, checkpoint), True, _KEPT)
    target = _within(size, family, checkpoint, rules, rules.cap_pixels)
    return None if target.size == size else target


def _within(size: Size, family: Family, checkpoint: Checkpoint, rules: PlanRules, cap_pixels: int | None) -> Target:
    target = plan_within(size, family, checkpoint, Caps(cap_pixels, rules.cap_side), rules.cap_tokens)
    if not rules.buckets:
        return target
    side = rules.cap_side
    buckets = [bucket for bucket in rules.buckets if side is None or max(bucket.width, bucket.height) <= side]
    return snapped(target, family, checkpoint, buckets) or target


def _adapted(size: Size, family: Family, checkpoint: Checkpoint, rules: PlanRules, under_caps: Target) -> Target | None:
    """What the image's detail asks for; ``None`` where that is no smaller, or would cost no fewer tokens."""
    pixels = rules.adapted_pixels
    if pixels is None or rules.preserve or under_caps.size.pixels <= pixels:
        return None
    target = _within(size, family, checkpoint, rules, pixels)
    smaller = target.size.pixels < under_caps.size.pixels and target.tokens.tokens < under_caps.tokens.tokens
    return target if smaller else None


def plan_image(facts: SourceFacts, family: Family, checkpoint: Checkpoint, rules: PlanRules) -> ImagePlan:
    """Plan one image for one model. ``checkpoint`` carries the backend's effective pixel cap.

    Raises Undecodable for a file that is cut off, AspectRatioExceeded for shapes the model's processor refuses.
    """
    probe = facts.probe
    if not probe.complete and not rules.salvage:
        raise Undecodable("The image's data ends before the image does.")
    original = probe.upright
    before = family.image_tokens(original, checkpoint)
    target = _target(original, family, checkpoint, rules)
    changes = _shape_changes(probe, rules)
    adapted = None
    if rules.adapted_pixels is not None:
        under_caps = target or Target(original, before, True, TargetReason.CONFORMING)
        adapted = _adapted(original, family, checkpoint, rules, under_caps)
        target = adapted or target
    if target is not None:
        changes.insert(0, Change.RESIZED if target.size.pixels < original.pixels else Change.ENLARGED)
    if adapted is not None:
        changes.insert(1, Change.ADAPTED)
    if not changes:
        if facts.remote:
            changes.append(Change.REMOTE)
        elif not facts.canonical:
            changes.append(Change.DATA_URL)
    return ImagePlan(
        original=original,
        target=original if target is None else target.size,
        changes=tuple(changes),
        output=rules.output,
        jpeg_quality=rules.jpeg_quality,
        background=rules.background,
        version=rules.version,
        before=before,
        after=before if target is None else target.tokens,
        fidelity=rules.fidelity,
        frame=facts.frame,
        to_srgb=rules.to_srgb and probe.foreign_profile,
        salvage=rules.salvage and not probe.complete,
    )
