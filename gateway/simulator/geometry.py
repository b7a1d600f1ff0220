"""From the sides of a picture to the tokens it costs in the Qwen-VL families: the engine's own resize to its grid.

Written from the rule that the served processors apply (transformers' `smart_resize` for Qwen2-VL and its successors;
defaults from the checkpoints' `preprocessor_config.json`), independently of the gateway's arithmetic.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

MAX_ASPECT_RATIO = 200


class Family(StrEnum):
    QWEN2_VL = "qwen2_vl"
    QWEN2_5_VL = "qwen2_5_vl"
    QWEN3_VL = "qwen3_vl"
    QWEN3_5 = "qwen3_5"


@dataclass(frozen=True, slots=True)
class Grid:
    """How one family cuts pictures. `patch_px` is the side of a vision patch, `merge` patches a side form one token;
    the limits are areas in pixels."""

    patch_px: int
    merge: int
    min_pixels: int
    max_pixels: int

    @property
    def unit_px(self) -> int:
        return self.patch_px * self.merge


@dataclass(frozen=True, slots=True)
class Fitted:
    """A picture as the vision tower sees it: rows and columns of merged tokens."""

    rows: int
    columns: int
    patches: int

    @property
    def tokens(self) -> int:
        return self.rows * self.columns


class AspectRatioError(ValueError):
    """The longer side is more than 200 times the shorter one."""


GRIDS = {
    Family.QWEN2_VL: Grid(patch_px=14, merge=2, min_pixels=3_136, max_pixels=12_845_056),
    Family.QWEN2_5_VL: Grid(patch_px=14, merge=2, min_pixels=3_136, max_pixels=12_845_056),
    Family.QWEN3_VL: Grid(patch_px=16, merge=2, min_pixels=65_536, max_pixels=16_777_216),
    Family.QWEN3_5: Grid(patch_px=16, merge=2, min_pixels=65_536, max_pixels=16_777_216),
}


def family_of_model(name: str) -> Family:
    """The family that a model's name suggests; Qwen3-VL when it suggests none."""
    plain = name.lower().replace("_", "-").replace(".", "-")
    if "qwen2-5-vl" in plain or "qwen25vl" in plain:
        return Family.QWEN2_5_VL
    if "qwen2-vl" in plain:
        return Family.QWEN2_VL
    if "qwen3-5" in plain or "qwen3-6" in plain:
        return Family.QWEN3_5
    return Family.QWEN3_VL


def fit(width: int, height: int, grid: Grid) -> Fitted:
    """The grid for a picture of `width` × `height` pixels (after any turning).

    Raises AspectRatioError beyond 200:1; exactly 200 passes. A side below half a unit rounds to nothing, which sends
    the picture into the enlarging branch: that is the processors' behaviour and kept.
    """
    longer, shorter = max(width, height), min(width, height)
    if longer > MAX_ASPECT_RATIO * shorter:
        raise AspectRatioError(f"absolute aspect ratio must be smaller than 200, got {longer / shorter}")
    unit = grid.unit_px
    rows, columns = round(height / unit), round(width / unit)
    area = rows * columns * unit * unit
    if area > grid.max_pixels:
        shrink = math.sqrt(width * height / grid.max_pixels)
        rows = max(1, math.floor(height / shrink / unit))
        columns = max(1, math.floor(width / shrink / unit))
    elif area < grid.min_pixels:
        enlarge = math.sqrt(grid.min_pixels / (width * height))
        rows, columns = math.ceil(height * enlarge / unit), math.ceil(width * enlarge / unit)
    return Fitted(rows=rows, columns=columns, patches=rows * columns * grid.merge * grid.merge)
