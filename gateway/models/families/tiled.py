"""Families that cut an image into tiles: one way of pricing and planning, many rules for the cut.

Decided here: what a plan may be, whatever the rule. Not decided here: how an image is cut and what that costs (the
family files), and with which numbers (the checkpoint's `tiles`).

A tiled price does not fall smoothly with the image's size, and some families price every image at its aspect alone. So
a plan is a choice among finitely many sizes, each priced as the engine would price it: the image itself and, by family,
the image shrunk to the sizes at which its tiling changes, or the canvases that the rule would stretch it to under a
smaller limit. None has more pixels than the image, and none costs more than it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import check_caps, check_sides, keeps_aspect
from gateway.models.tiling import TileShape, shrunk_to
from gateway.types import ImageTokens, Size

# A size that rounding moved by a pixel is looked for beside the computed one.
_NEARBY = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))


# Shrinking by steps ends at these: below, rounding alone decides what the aspect is.
_LEAST_STEP = 32
_MOST_STEPS = 24


@dataclass(frozen=True, slots=True)
class Cut:
    """One image as its processor cuts it. `canvas` is the raster that becomes tiles, without the overview."""

    tokens: int
    struct_tokens: int
    columns: int
    rows: int
    canvas: Size
    vit_patches: int


# A size to deliver, and how it is cut.
Option = tuple[Size, Cut]
Cutter = Callable[[Size, Checkpoint], Cut]
# The largest raster, with the image's content alone, that the processor makes of an image with this cut.
Fitter = Callable[[Size, Cut, Checkpoint], Size]
# Sizes to which an image could be shrunk so that its cut changes; may be larger than the image.
Shrinker = Callable[[Size, Checkpoint], Sequence[Size]]


def shape_of(checkpoint: Checkpoint) -> TileShape:
    """The numbers of the tiling. Raises `ValueError` for a checkpoint that has none."""
    if checkpoint.tiles is None:
        raise ValueError(f"tiles: {checkpoint.name} has no tiling, which its family needs")
    return checkpoint.tiles


@dataclass(frozen=True, slots=True)
class TiledFamily:
    """A family whose images are cut into tiles.

    `crowd_cutter` counts the images of a request of `crowd_images` or more; `in_prompt` is false where embeddings take
    no position in the prompt; with `numbered`, an image's number in the request stands before it, a token a digit.
    """

    name: str
    knob: str
    cutter: Cutter
    fitter: Fitter
    shrinker: Shrinker
    wrapper_tokens: int = 0
    in_prompt: bool = True
    crowd_cutter: Cutter | None = None
    numbered: bool = False

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        return self._price(self.cut(size, checkpoint), checkpoint)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        cutter = self._crowd_cutter(len(sizes), checkpoint)
        if cutter is None:
            prices = tuple(self.image_tokens(size, checkpoint) for size in sizes)
            return tuple(_with_digits(price, at) for at, price in enumerate(prices)) if self.numbered else prices
        for size in sizes:
            check_sides(size)
        return tuple(self._price(cutter(size, checkpoint), checkpoint) for size in sizes)

    def tokens_among(self, size: Size, image_count: int, checkpoint: Checkpoint) -> int | None:
        """Numbers before images are structure, no embeddings: they do not count here."""
        cutter = self._crowd_cutter(image_count, checkpoint)
        if cutter is None:
            return self.image_tokens(size, checkpoint).tokens
        check_sides(size)
        return self._price(cutter(size, checkpoint), checkpoint).tokens

    def _crowd_cutter(self, image_count: int, checkpoint: Checkpoint) -> Cutter | None:
        limit = shape_of(checkpoint).crowd_images
        return self.crowd_cutter if 0 < limit <= image_count else None

    def cut(self, size: Size, checkpoint: Checkpoint) -> Cut:
        """How the processor cuts a raster of this size, alone in its request."""
        if size.width < 1 or size.height < 1:
            check_sides(size)
        return self.cutter(size, checkpoint)

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:
        """The canvas, padding included; the overview is a second, smaller raster."""
        return self.cut(size, checkpoint).canvas

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        """The raster's own size: these processors enlarge what is small. Raises for shapes that they refuse."""
        self.cut(size, checkpoint)
        return size

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        """The largest of the possible sizes within the caps, the image itself first; pixel caps bind the canvas too.

        Where none is within, the cheapest of them, and so on from there, until nothing cheaper is left.
        """
        check_caps(cap_pixels, cap_tokens)
        start, cut = _start(self, size, checkpoint)
        if _within(start, cut, cap_pixels, cap_tokens):
            return Target(start, self._price(cut, checkpoint), reached=True, reason=self._why(size, start, checkpoint))
        cheapest, options = _options(self, size, checkpoint)
        for other, found in options:
            if _within(other, found, cap_pixels, cap_tokens):
                return Target(other, self._price(found, checkpoint), reached=True, reason=TargetReason.POLICY_CAP)
        if cheapest == size:
            return Target(size, self._price(cut, checkpoint), reached=False, reason=TargetReason.CAP_UNREACHABLE)
        target = self.plan(cheapest, checkpoint, cap_pixels=cap_pixels, cap_tokens=cap_tokens)
        # What is cheaper still counts as reached only where it keeps the aspect of the image that was sent.
        reached = target.reached and keeps_aspect(size, target.size, shape_of(checkpoint).side)
        reason = TargetReason.POLICY_CAP if reached else TargetReason.CAP_UNREACHABLE
        return replace(target, reached=reached, reason=reason)

    def possible(self, size: Size, checkpoint: Checkpoint) -> Iterator[Option]:
        """Other sizes to deliver, each as the engine would make it, none with more pixels or tokens than the image."""
        side, most_tokens = shape_of(checkpoint).side, self.cut(size, checkpoint).tokens
        shrunk = self.shrinker(size, checkpoint)
        for raw in [*shrunk, *(_steps(size) if shrunk else ())]:
            cut = None if raw.pixels > size.pixels else self._taken(raw, checkpoint)
            if cut is not None:
                option = self.as_the_engine_would(raw, cut, checkpoint)
                if option[1].tokens <= most_tokens and keeps_aspect(size, option[0], side):
                    yield option

    def as_the_engine_would(self, size: Size, cut: Cut, checkpoint: Checkpoint) -> Option:
        """The raster that the processor itself would shrink the image to, if sending that changes nothing else."""
        fitted = self.fitter(size, cut, checkpoint)
        if fitted.pixels >= size.pixels:
            return size, cut
        for wider, higher in _NEARBY:
            near = Size(fitted.width + wider, fitted.height + higher)
            if near.width < 1 or near.height < 1 or near.pixels >= size.pixels:
                continue
            again = self._taken(near, checkpoint)
            if again is None or replace(again, canvas=cut.canvas) != cut:
                continue
            if self.fitter(near, again, checkpoint) == near:
                return near, again
        return size, cut

    def _taken(self, size: Size, checkpoint: Checkpoint) -> Cut | None:
        """The cut, or `None` for a shape that the processor refuses."""
        try:
            return self.cutter(size, checkpoint)
        except AspectRatioExceeded:
            return None

    def _why(self, size: Size, start: Size, checkpoint: Checkpoint) -> TargetReason:
        if start != size:
            return TargetReason.ENGINE_CAP
        fitted = self.fitter(size, self.cut(size, checkpoint), checkpoint)
        return TargetReason.ENGINE_RESIZES if fitted.pixels < size.pixels else TargetReason.CONFORMING

    def _price(self, cut: Cut, checkpoint: Checkpoint) -> ImageTokens:
        """Without M-RoPE every embedding in the prompt advances the position by one."""
        patch, canvas = checkpoint.patch, cut.canvas
        return ImageTokens(
            cut.tokens,
            cut.struct_tokens,
            self.wrapper_tokens,
            (1, canvas.height // patch, canvas.width // patch),
            cut.tokens if self.in_prompt else 0,
            cut.vit_patches,
        )


def _with_digits(price: ImageTokens, number: int) -> ImageTokens:
    """Image numbers begin at 0; the price of a single image has one digit."""
    return price if number < 10 else replace(price, struct_tokens=price.struct_tokens + len(str(number)) - 1)


# Kept, because sharing a budget plans the same images under many caps.
@lru_cache(maxsize=512)
def _start(family: TiledFamily, size: Size, checkpoint: Checkpoint) -> Option:
    """What is delivered where no cap binds."""
    return family.as_the_engine_would(size, family.cut(size, checkpoint), checkpoint)


@lru_cache(maxsize=512)
def _options(family: TiledFamily, size: Size, checkpoint: Checkpoint) -> tuple[Size, tuple[Option, ...]]:
    """The cheapest of all sizes, and those that a cap may get, the best first.

    A size that costs more than a larger one has tiles full of enlarged pixels; it is no option. So what costs more
    shows more, and the costliest within a cap is the best.
    """
    start = _start(family, size, checkpoint)
    found = dict(family.possible(size, checkpoint))
    cheapest, _ = min([start, *found.items()], key=_cost)
    options, limit = [], start[1].tokens
    for option in sorted(found.items(), key=_pixels_then_fewest_tokens):
        if option[1].tokens <= limit:
            options.append(option)
            limit = option[1].tokens
    return cheapest, tuple(options)


def _steps(size: Size) -> list[Size]:
    """The image shrunk by fixed steps of an eighth: rounding makes some sizes between the marked ones dearer."""
    steps: list[Size] = []
    width, height = size.width * 7 // 8, size.height * 7 // 8
    while min(width, height) >= _LEAST_STEP and len(steps) < _MOST_STEPS:
        steps.append(Size(width, height))
        width, height = width * 7 // 8, height * 7 // 8
    return steps


def _within(size: Size, cut: Cut, cap_pixels: int | None, cap_tokens: int | None) -> bool:
    if cap_tokens is not None and cut.tokens > cap_tokens:
        return False
    return cap_pixels is None or (size.pixels <= cap_pixels and cut.canvas.pixels <= cap_pixels)


def _cost(option: Option) -> tuple[int, int, int]:
    """Cheapest first: tokens, then what the engine works on, then the most of the image. No cap plays a part."""
    size, cut = option
    return cut.tokens, cut.canvas.pixels, -size.pixels


def _pixels_then_fewest_tokens(option: Option) -> tuple[int, int]:
    size, cut = option
    return -size.pixels, cut.tokens


# --- fitters and shrinkers that several families share --------------------------------------------------------------


def stretched(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's, here and below
    """For processors that stretch the image to the canvas: the canvas."""
    return cut.canvas


def covering(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """For processors whose overview keeps the aspect while the tiles are stretched: large enough for both."""
    view = shape_of(checkpoint).view_side
    width, height = cut.canvas.width, cut.canvas.height
    if view:
        long = max(size.width, size.height)
        width = max(width, -(-view * size.width // long))
        height = max(height, -(-view * size.height // long))
    if width * size.height >= height * size.width:
        return Size(width, -(-size.height * width // size.width))
    return Size(-(-size.width * height // size.height), height)


def unshrinkable(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:  # noqa: ARG001
    """For families that price an image by its aspect alone: no smaller size costs less."""
    return ()


def by_tiles(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """For families that look for the tightest canvas: the sizes that fill whole tiles on one side."""
    tiles = shape_of(checkpoint)
    return shrunk_to(size, [tiles.side * count for count in range(1, tiles.most + 1)])
