"""Images that are left out of a request: a visible text takes the place of each, so that the model knows of the gap.

Decided here: what the text is and what else goes with the image. Not decided here: which images (``policy.dropping``),
and how the text gets into the body (``outgoing``, ``splice``).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import cast

from gateway.policy.dropping import images_to_drop
from gateway.policy.effective import EffectivePolicy
from gateway.types import Call, ImagePart, Json, JsonObject

MARKER = "[An image stood here. It was left out: the request has more than is allowed.]"
_MARKER_BYTES = len(MARKER.encode())


def within_count(policy: EffectivePolicy, call: Call, tree: JsonObject) -> Call:
    """The call without the images that go before they are looked at; shadow mode leaves all."""
    if not call.images or policy.shadow:
        return call
    return leave_out(call, images_to_drop(policy, call), tree)


def as_enforced(policy: EffectivePolicy, call: Call) -> Call:
    """What the declared rules are to be held against: in shadow mode, the call as enforcement would have left it."""
    return leave_out(call, images_to_drop(policy, call), None) if policy.shadow and call.images else call


def leave_out(call: Call, dropped: Collection[int], tree: JsonObject | None) -> Call:
    """The call without these images; its tree, which tokenizers read, has the texts in their places afterwards."""
    if not dropped:
        return call
    omitted = tuple(call.images[index] for index in sorted(dropped) if not call.images[index].frame)
    if tree is not None:
        for image in omitted:
            _mark(tree, image)
    places = {image.part for image in omitted}
    return replace(
        call,
        images=tuple(image for index, image in enumerate(call.images) if index not in dropped),
        omitted=call.omitted + omitted,
        text_bytes=call.text_bytes + _MARKER_BYTES * len(omitted),
        foreign_fields=tuple(
            pointer for pointer in call.foreign_fields if not any(pointer[: len(place)] == place for place in places)
        ),
    )


def marker_part(image: ImagePart) -> dict[str, str]:
    """The part that stands in an image's place."""
    return {"type": image.text_type, "text": MARKER}


def marker_json(image: ImagePart) -> bytes:
    """`marker_part` as it goes into the body."""
    return json.dumps(marker_part(image)).encode()


def _mark(tree: JsonObject, image: ImagePart) -> None:
    holder: Json = tree
    for step in image.part[:-1]:
        # Any other shape would have been no place for an image: the dialect walked the same steps.
        holder = cast("JsonObject", holder)[cast("str", step)]
    cast("list[Json]", holder)[cast("int", image.part[-1])] = cast("Json", marker_part(image))
