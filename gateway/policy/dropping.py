"""Which images of a request go: the oldest beyond a limit (``on_excess: drop_oldest``), or batches (``history``).

Decided here: which. Both are one function of the request alone: everything before a frontier goes, and the frontier is
the first place at which the rest keeps the limit. ``drop_oldest`` looks at every place, so a conversation that grows
moves it with each image; ``history`` at every ``batch``-th only, so it holds still until as many more have come, and
never goes back. Nothing is remembered between requests: a request that is sent again loses the same images, on every
replica. Not decided here: what takes their place (``omission``), and whether what is left is refused (`rules`).

An image that stands alone where a list of parts should (a screenshot as a call's whole output) cannot be replaced; it
stays, and counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.policy.effective import Excess, History, RuleValues
from gateway.types import Call, ImagePart, LongString


def images_to_drop(values: RuleValues, call: Call) -> tuple[int, ...]:
    """Indices of the images that go by their count or their bytes, known before anything is fetched."""
    images, history = call.images, values.history
    dropped: set[int] = set()
    if values.max_images is not None and values.on_excess.max_images is Excess.DROP_OLDEST:
        dropped.update(oldest_beyond(images, [1] * len(images), values.max_images))
    if history is not None and history.images is not None:
        dropped.update(batches_beyond(history, call, [1] * len(images), history.images))
    if history is not None and history.bytes is not None:
        dropped.update(batches_beyond(history, call, [inline_bytes(image) for image in images], history.bytes))
    return tuple(sorted(dropped))


def images_too_large(values: RuleValues, call: Call, pixels: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
    """The same by ``max_total_pixels`` and ``max_image_tokens``, from what was planned for each image."""
    dropped: set[int] = set()
    if values.max_total_pixels is not None and values.on_excess.max_total_pixels is Excess.DROP_OLDEST:
        dropped.update(oldest_beyond(call.images, pixels, values.max_total_pixels))
    if values.max_image_tokens is not None and values.on_excess.max_image_tokens is Excess.DROP_OLDEST:
        dropped.update(oldest_beyond(call.images, tokens, values.max_image_tokens))
    return tuple(sorted(dropped))


def batches_beyond(history: History, call: Call, amounts: Sequence[int], limit: int) -> tuple[int, ...]:
    """The fewest whole batches of the oldest images without which the others keep a limit together.

    Where no place between two batches suffices, all go but the newest that always stay. Images that were left out
    already are the oldest, and count as places.
    """
    return oldest_beyond(call.images, amounts, limit, history.batch, history.keep_newest, first=len(call.omitted))


def oldest_beyond(
    images: Sequence[ImagePart],
    amounts: Sequence[int],
    limit: int,
    batch: int = 1,
    keep_newest: int = 1,
    *,
    first: int = 0,
) -> tuple[int, ...]:
    """The fewest of the oldest without which the others keep a limit together; all that may go where none suffice.

    The frontier stands at a multiple of ``batch``; ``first`` is the place of the first of these images. Frames and
    pages of one source have one place: they stay or go together.
    """
    left, place = sum(amounts), first
    last = len(amounts) - keep_newest
    while last > 0 and images[last].frame:
        last -= 1
    dropped = []
    for index in range(last):
        if not images[index].frame:
            if left <= limit and place % batch == 0:
                break
            place += 1
        if is_replaceable(images[index]):
            dropped.append(index)
            left -= amounts[index]
    return tuple(dropped)


def is_replaceable(image: ImagePart) -> bool:
    """Whether a text may stand where the image does: it is one part of a list that may hold texts."""
    return isinstance(image.part[-1], int) and not image.is_fixed


def inline_bytes(image: ImagePart) -> int:
    """The file's bytes in the body, as its base64 says them (3 in 4 characters); none for an address."""
    source = image.source
    if isinstance(source, LongString):
        return source.span.byte_count * 3 // 4
    return len(source) * 3 // 4 if source[:5].lower() == "data:" else 0
