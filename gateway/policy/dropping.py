"""Which images of a request go under ``on_excess: drop_oldest``: the fewest of the oldest, and never the newest.

Decided here: which. Both functions are pure and see one request only, so a request that is sent again loses the same
images. Not decided here: what takes their place (``omission``), and whether what is left is refused (`rules`).
An image that stands alone where a list of parts should (a screenshot as a call's whole output) cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.policy.effective import Excess, RuleValues
from gateway.types import Call, ImagePart


def images_to_drop(values: RuleValues, call: Call) -> tuple[int, ...]:
    """Indices of the images that are too many by ``max_images``, known before anything is fetched."""
    if values.max_images is None or values.on_excess.max_images is not Excess.DROP_OLDEST:
        return ()
    return oldest_beyond(call.images, [1] * len(call.images), values.max_images)


def images_too_large(values: RuleValues, call: Call, pixels: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
    """The same by ``max_total_pixels`` and ``max_image_tokens``, from what was planned for each image."""
    dropped: set[int] = set()
    if values.max_total_pixels is not None and values.on_excess.max_total_pixels is Excess.DROP_OLDEST:
        dropped.update(oldest_beyond(call.images, pixels, values.max_total_pixels))
    if values.max_image_tokens is not None and values.on_excess.max_image_tokens is Excess.DROP_OLDEST:
        dropped.update(oldest_beyond(call.images, tokens, values.max_image_tokens))
    return tuple(sorted(dropped))


def oldest_beyond(images: Sequence[ImagePart], amounts: Sequence[int], limit: int) -> tuple[int, ...]:
    """The fewest of the oldest without which the others keep a limit together; all that may go where none suffice."""
    left = sum(amounts)
    dropped = []
    for index in range(len(amounts) - 1):
        if left <= limit:
            break
        if is_replaceable(images[index]):
            dropped.append(index)
            left -= amounts[index]
    return tuple(dropped)


def is_replaceable(image: ImagePart) -> bool:
    """Whether a text may stand where the image does: it is one part of a list."""
    return isinstance(image.part[-1], int)
