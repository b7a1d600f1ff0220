"""Prices in tokens: of one image, of one request. Not decided here: the arithmetic (`models`)."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.types.per_request import per_request


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """The price of one raster in one model. ``tokens`` are positions that hold an image embedding.

    ``struct_tokens`` are added by the processor's expansion, ``wrapper_tokens`` by the chat template around the image
    (Qwen: 2). ``grid`` is (frames, rows, columns) in patches. ``position_advance`` is the M-RoPE advance.
    """

    tokens: int
    struct_tokens: int
    wrapper_tokens: int
    grid: tuple[int, int, int]
    position_advance: int
    vit_patches: int

    @property
    def prompt_tokens(self) -> int:
        return self.tokens + self.struct_tokens + self.wrapper_tokens


@per_request(frozen=True, slots=True)
class TokenEstimate:
    """Predicted tokens of one request. ``text_tokens`` is the expected count, bounded by the other two.

    ``exact`` is set when the model's own tokenizer and template counted the text. ``video_tokens`` are all positions
    that videos take, timestamps and markers included, as far as their headers told.
    """

    text_tokens: int
    text_lower_bound: int
    text_upper_bound: int
    image_tokens: int
    image_overhead_tokens: int
    output_tokens: int
    exact: bool = False
    video_tokens: int = 0

    @property
    def media_tokens(self) -> int:
        """All that is no text: images with what stands around them, and videos."""
        return self.image_tokens + self.image_overhead_tokens + self.video_tokens

    @property
    def prompt_tokens(self) -> int:
        return self.text_tokens + self.media_tokens

    @property
    def prompt_lower_bound(self) -> int:
        return self.text_lower_bound + self.media_tokens

    @property
    def kv_tokens(self) -> int:
        """What the request may come to hold: the prompt (upper bound) and its output reserve."""
        return self.text_upper_bound + self.media_tokens + self.output_tokens
