"""Models without eyes: any image is refused.

Decided here: that the refusal is ours, early, and names the model. Engines answer such a request with anything from a
clear 400 to a crash in the chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from gateway.errors import InvalidRequest
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target
from gateway.types import ImageTokens, Size


@dataclass(frozen=True, slots=True)
class TextOnlyFamily:
    """Every question about an image raises `InvalidRequest`; no image, no question."""

    name: str = "text_only"
    knob: str = ""

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:  # noqa: ARG002  # the contract's
        _refuse(checkpoint)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        if sizes:
            _refuse(checkpoint)
        return ()

    def tokens_among(
        self,
        size: Size,  # noqa: ARG002  # the contract's, here and below
        image_count: int,  # noqa: ARG002
        checkpoint: Checkpoint,
    ) -> int | None:
        _refuse(checkpoint)

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:  # noqa: ARG002  # the contract's
        _refuse(checkpoint)

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:  # noqa: ARG002  # the contract's
        _refuse(checkpoint)

    def plan(
        self,
        size: Size,  # noqa: ARG002  # the contract's, here and below
        checkpoint: Checkpoint,
        *,
        cap_pixels: int | None = None,  # noqa: ARG002
        cap_tokens: int | None = None,  # noqa: ARG002
    ) -> Target:
        _refuse(checkpoint)


def _refuse(checkpoint: Checkpoint) -> NoReturn:
    raise InvalidRequest(f"The model {checkpoint.name} takes no images.")


TEXT_ONLY: Final = TextOnlyFamily()
