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

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import check_caps, check_sides, keeps_aspect
from gateway.models.tiling import TileShape, shrunk_to
from gateway.types import ImageTokens, Size

# A size that rounding moved by a pixel is looked for beside the computed one.
_NEARBY = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))


@dataclass(frozen=True, slots=True)
class Cut:
    """One image as its processor cuts it. `canvas` is the raster that becomes tiles, without the overview."""

    tokens: int
    struct_tokens: int
    columns: int
    rows: int
    canvas: Size
    vit_patches: int


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
    no position in the prompt.
    """

    name: str
    knob: str
    cutter: Cutter
    fitter: Fitter
    shrinker: Shrinker
    wrapper_tokens: int = 0
    in_prompt: bool = True
    crowd_cutter: Cutter | None = None

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        return self._price(self.cut(size, checkpoint), checkpoint)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        limit, cutter = shape_of(checkpoint).crowd_images, self.crowd_cutter
        if cutter is None or not 0 < limit <= len(sizes):
            return tuple(self.image_tokens(size, checkpoint) for size in sizes)
        for size in sizes:
            check_sides(size)
        return tuple(self._price(cutter(size, checkpoint), checkpoint) for size in sizes)

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
        """The costliest of the possible sizes within the caps, the image itself first; pixel caps bind the canvas too.

        Where none is within, the cheapest of them, and so on from there, until nothing cheaper is left.
        """
        check_caps(cap_pixels, cap_tokens)
        start = self._as_the_engine_would(size, checkpoint)
        cut = self.cut(start, checkpoint)
        if _within(start, cut, cap_pixels, cap_tokens):
            return Target(start, self._price(cut, checkpoint), reached=True, reason=self._why(size, start, checkpoint))
        cheapest, cheapest_cut = start, cut
        best: tuple[Size, Cut] | None = None
        for other in self._possible(size, start, checkpoint):
            found = self.cut(other, checkpoint)
            if found.tokens > cut.tokens:
                continue
            if _cost(other, found) < _cost(cheapest, cheapest_cut):
                cheapest, cheapest_cut = other, found
            if _within(other, found, cap_pixels, cap_tokens) and (best is None or _worth(other, found) > _worth(*best)):
                best = other, found
        if best is not None:
            return Target(best[0], self._price(best[1], checkpoint), reached=True, reason=TargetReason.POLICY_CAP)
        if cheapest == start:
            return Target(start, self._price(cut, checkpoint), reached=False, reason=TargetReason.CAP_UNREACHABLE)
        return self._onwards(size, cheapest, checkpoint, cap_pixels, cap_tokens)

    def _onwards(
        self, size: Size, cheapest: Size, checkpoint: Checkpoint, cap_pixels: int | None, cap_tokens: int | None
    ) -> Target:
        """The plan of the cheapest size, which counts as reached only where it still keeps the image's aspect."""
        target = self.plan(cheapest, checkpoint, cap_pixels=cap_pixels, cap_tokens=cap_tokens)
        reached = target.reached and keeps_aspect(size, target.size, shape_of(checkpoint).side)
        reason = TargetReason.POLICY_CAP if reached else TargetReason.CAP_UNREACHABLE
        return replace(target, reached=reached, reason=reason)

    def _possible(self, size: Size, start: Size, checkpoint: Checkpoint) -> Iterator[Size]:
        """Other sizes to deliver, each as the engine would make it, none with more pixels than the image."""
        side = shape_of(checkpoint).side
        for raw in self.shrinker(start, checkpoint):
            if raw.pixels <= start.pixels and self._takes(raw, checkpoint):
                settled = self._as_the_engine_would(raw, checkpoint)
                if keeps_aspect(size, settled, side):
                    yield settled

    def _as_the_engine_would(self, size: Size, checkpoint: Checkpoint) -> Size:
        """The raster that the processor itself would shrink the image to, if sending that changes nothing else."""
        cut = self.cut(size, checkpoint)
        fitted = self.fitter(size, cut, checkpoint)
        if fitted.pixels >= size.pixels:
            return size
        for wider, higher in _NEARBY:
            near = Size(fitted.width + wider, fitted.height + higher)
            if near.width < 1 or near.height < 1 or near.pixels >= size.pixels or not self._takes(near, checkpoint):
                continue
            again = self.cut(near, checkpoint)
            if replace(again, canvas=cut.canvas) == cut and self.fitter(near, again, checkpoint) == near:
                return near
        return size

    def _takes(self, size: Size, checkpoint: Checkpoint) -> bool:
        try:
            self.cut(size, checkpoint)
        except AspectRatioExceeded:
            return False
        return True

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


def _within(size: Size, cut: Cut, cap_pixels: int | None, cap_tokens: int | None) -> bool:
    if cap_tokens is not None and cut.tokens > cap_tokens:
        return False
    return cap_pixels is None or (size.pixels <= cap_pixels and cut.canvas.pixels <= cap_pixels)


def _cost(size: Size, cut: Cut) -> tuple[int, int, int]:
    """Cheapest first: tokens, then what the engine works on, then the most of the image. No cap plays a part."""
    return cut.tokens, cut.canvas.pixels, -size.pixels


def _worth(size: Size, cut: Cut) -> tuple[int, int]:
    return cut.tokens, size.pixels


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
