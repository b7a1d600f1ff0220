"""The numbers of one checkpoint: how it cuts images, what it keeps per token, what it computes per token.

Decided here: which numbers a model consists of for the gateway. Not decided here: their values (`checkpoints.toml`),
and how a family uses them. Families that need other numbers (tiles, windows, pin points) add a field here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gateway.models.cost import DecoderShape, EncoderShape
from gateway.models.grounding import CoordinateForm
from gateway.models.kv import KvShape
from gateway.models.text import ChatTemplate
from gateway.models.tiling import TileEngine, TileShape

# Rules look through every grid of so many tiles. The models in use have at most 64; more is a mistake, and slow.
_MOST_TILES: Final = 256


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One model as it is served. Pixels are areas (width x height); `None` = not known.

    `patch` is the side of one encoder patch in pixels, `merge` how many patches per side become one token. A text-only
    model has 0 in the vision numbers. `max_ratio` is the processor's own limit, beyond which it raises. `longest_side`
    is a limit of the longer side in pixels (0 = none). `image_budget_tokens` is what one request's text leaves of the
    context, for the family whose images share that; it is a request's number, set on a copy. `sglang_family` is the
    family that counts for SGLang where it runs another processor than vLLM ("" = the same). `coordinates` is how it
    writes boxes and points.
    """

    name: str
    family: str
    patch: int
    merge: int
    min_pixels: int
    max_pixels: int
    max_ratio: float
    kv: KvShape | None
    bytes_per_text_token: float
    template: ChatTemplate
    context_tokens: int | None = None
    encoder: EncoderShape | None = None
    decoder: DecoderShape | None = None
    tiles: TileShape | None = None
    longest_side: int = 0
    image_budget_tokens: int | None = None
    sglang_family: str = ""
    coordinates: CoordinateForm = CoordinateForm.NONE

    @property
    def factor(self) -> int:
        """The side of one token's square in pixels."""
        return self.patch * self.merge

    def counted_by(self, engine: TileEngine) -> Checkpoint:
        """A checkpoint of the catalogue as this engine counts it; most families are counted alike by all."""
        if engine is TileEngine.SGLANG and self.sglang_family:
            return replace(self, family=self.sglang_family)
        if self.tiles is None or self.tiles.engine is engine:
            return self
        return replace(self, tiles=replace(self.tiles, engine=engine))

    def with_tiles(self, most: int) -> Checkpoint:
        """The same checkpoint served with another limit of tiles (the engine's own knob), 1 to 256.

        Raises `ValueError` for another number, and for a family that does not cut images into tiles.
        """
        if self.tiles is None or not 1 <= most <= _MOST_TILES:
            raise ValueError(f"max_tiles: {most} is no number of tiles of {self.name}")
        return replace(self, tiles=replace(self.tiles, most=most, least=min(self.tiles.least, most)))

    def with_(self, *, max_pixels: int | None = None, min_pixels: int | None = None) -> Checkpoint:
        """The same checkpoint served with other pixel limits (the engine's own knob); the numbers must be positive."""
        for name, value in (("max_pixels", max_pixels), ("min_pixels", min_pixels)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        return replace(
            self,
            max_pixels=self.max_pixels if max_pixels is None else max_pixels,
            min_pixels=self.min_pixels if min_pixels is None else min_pixels,
        )
