"""Sources of several pictures, where a policy takes more than one: each frame or page becomes an image of its own.

Decided here: which frames and pages, and that each is a further image part right behind the one that held them, so that
every engine and every family counts it like any other image. Not decided here: whether so many are accepted, their
pixels (`media`), how a part is written (`outgoing`). An image that does not stand in a list, or is fixed, stays its
first frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from gateway.errors import Undecodable
from gateway.policy.effective import EffectivePolicy, Several
from gateway.types import Call, ImageFormat, ImagePart, Json, JsonObject, Pointer, SourceFacts

# Animations whose frames can be decoded one by one; of AVIF and HEIC only the primary picture is.
_SAMPLED = frozenset({ImageFormat.GIF, ImageFormat.WEBP, ImageFormat.PNG})


def spread(policy: EffectivePolicy, call: Call, facts: Sequence[SourceFacts]) -> tuple[Call, Sequence[SourceFacts]]:
    """The call with every frame and page that the policy takes as an image, and the facts of each.

    Raises Undecodable for a page that cannot be read.
    """
    takes_many = Several.MANY in (policy.animated.how, policy.pages.how)
    if not takes_many or policy.shadow or all(fact.probe.frames < 2 for fact in facts):
        return call, facts
    images: list[ImagePart] = []
    spread_facts: list[SourceFacts] = []
    for part, fact in zip(call.images, facts, strict=True):
        each = _frames_of(policy, part, fact)
        images += [replace(part, frame=index) for index in range(len(each))]
        spread_facts += each
    return replace(call, images=tuple(images)), spread_facts


def sampled(frames: int, count: int) -> list[int]:
    """``count`` frames evenly, the first and the last among them (as numpy's linspace in engines' video sampling)."""
    if frames <= count:
        return list(range(frames))
    return [index * (frames - 1) // (count - 1) for index in range(count)]


def _frames_of(policy: EffectivePolicy, part: ImagePart, fact: SourceFacts) -> list[SourceFacts]:
    probe = fact.probe
    if probe.frames < 2 or part.is_fixed or not isinstance(part.part[-1], int):
        return [fact]
    if not probe.format.is_document:
        if policy.animated.how is not Several.MANY or probe.format not in _SAMPLED:
            return [fact]
        return [replace(fact, frame=frame) for frame in sampled(probe.frames, policy.animated.count)]
    if policy.pages.how is not Several.MANY:
        return [fact]
    count = min(probe.frames, policy.pages.count)
    if len(probe.pages) < count:
        raise Undecodable(f"Page {len(probe.pages) + 1} of the document is damaged.", part=part.name)
    return [
        replace(fact, frame=index, probe=replace(probe, raster=page.raster, orientation=page.orientation, pages=()))
        for index, page in enumerate(probe.pages[:count])
    ]


def as_engine_sees(tree: JsonObject, images: Sequence[ImagePart]) -> JsonObject:
    """The parsed body with a part for every frame, for tokenizers; the tree itself where nothing was spread.

    Copies only the lists and objects on the way to a part that is repeated; the tree given keeps its places.
    """
    repeats: dict[Pointer, int] = {}
    for image in images:
        if image.frame:
            repeats[image.part] = image.frame
    # From the back, so that what is inserted moves no place that is still to come.
    for place in sorted(repeats, key=lambda pointer: tuple(str(step).zfill(9) for step in pointer), reverse=True):
        tree = cast("JsonObject", _repeated(tree, place, repeats[place]))
    return tree


def _repeated(value: Json, place: Pointer, more: int) -> Json:
    step, rest = place[0], place[1:]
    if isinstance(value, list):
        index = cast("int", step)
        inner = [value[index]] * (1 + more) if not rest else [_repeated(value[index], rest, more)]
        return value[:index] + inner + value[index + 1 :]
    holder = cast("JsonObject", value)
    key = cast("str", step)
    return {**holder, key: _repeated(holder[key], rest, more)}
