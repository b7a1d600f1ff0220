"""A prompt as engines hash it: token ids with every image's placeholder expanded, and where each image lies.

Decided here: what an image's one placeholder grows into. Not decided here: how many tokens that is (`models`), which
ids the text has (`prompts`), under which identity the engine knows the image.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

# 64-bit: SGLang writes sentinels of 62 bits where images are (0.5.23 srt/managers/mm_utils.py).
TOKEN_TYPE = "Q"  # noqa: S105  # an array's type code


@dataclass(frozen=True, slots=True)
class PlacedImage:
    """One image's run of positions, and what engines know it by: vLLM an id, SGLang 64 bits. ``None``: unknown."""

    offset: int
    length: int
    identifier: str | None = None
    pad_hash: int | None = None


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """A whole prompt, with the salt of its request, and its adapter's name and (for engines' own hashes) path."""

    token_ids: array[int]
    images: tuple[PlacedImage, ...] = ()
    salt: str | None = None
    lora: tuple[str, str] | None = None

    def known_tokens(self, *, pads: bool) -> int:
        """The positions before the first image whose identity is not known: behind it nothing can be said."""
        for image in self.images:
            if (image.pad_hash if pads else image.identifier) is None:
                return image.offset
        return len(self.token_ids)


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """What a tokenizer made of a rendered template: one placeholder for each image, at these positions."""

    token_ids: array[int] = field(repr=False)
    placeholders: tuple[int, ...]


def expanded(
    raw: RawPrompt,
    lengths: Sequence[int],
    identifiers: Sequence[str | None],
    salt: str | None = None,
    lora: tuple[str, str] | None = None,
) -> TokenPrompt | None:
    """Every placeholder repeated to its image's length; ``None`` where numbers of images do not agree.

    Holds for families that write one token as often as the image has embeddings, and nothing between or around that the
    template does not (Qwen, GLM, Kimi and their kin: ``struct_tokens`` of 0). A length of 0 stands for any other
    family: the prompt ends there, and its last image is unknown.
    """
    if not len(raw.placeholders) == len(lengths) == len(identifiers):
        return None
    ids = array(TOKEN_TYPE)
    placed = []
    start = 0
    for position, length, identifier in zip(raw.placeholders, lengths, identifiers, strict=True):
        ids += raw.token_ids[start:position]
        if length < 1:
            placed.append(PlacedImage(len(ids), 1, None))
            ids.append(raw.token_ids[position])
            return TokenPrompt(ids, tuple(placed), salt, lora)
        placed.append(PlacedImage(len(ids), length, identifier))
        ids += array(TOKEN_TYPE, (raw.token_ids[position],)) * length
        start = position + 1
    ids += raw.token_ids[start:]
    return TokenPrompt(ids, tuple(placed), salt, lora)
