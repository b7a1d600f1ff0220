"""From an image row's parameters to the tiling that we count with, for the families that cut images into tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily
from gateway.models.tiling import TileEngine, TileShape
from gateway.types import Size
from tests.golden.tables import Row, parameters

Parameters = dict[str, object]


def tiled(row: Row, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint under the row's parameters and counted as the row's engine does."""
    assert checkpoint.tiles is not None, checkpoint.name
    given = parameters(row)
    shape = _READERS[row["family"]](given, checkpoint.tiles)
    if row["family"] == "minicpmv4_6":
        return replace(checkpoint, tiles=shape, merge={"16x": 4, "4x": 2}[str(given["downsample_mode"])])
    if row["family"] == "phi4_mm" and row["source"].startswith("vLLM"):
        shape = replace(shape, engine=TileEngine.VLLM_COUNT)
    return replace(checkpoint, tiles=shape)


def _number(given: Parameters, name: str) -> int:
    value = given[name]
    assert isinstance(value, int), name
    return value


def _sides(value: object, side: int) -> tuple[tuple[int, int], ...]:
    """Canvases as (height, width) in pixels, or as the tables' own short forms of a full set."""
    if value == "384*{1..6}x{1..6}":
        return tuple((rows, columns) for rows in range(1, 7) for columns in range(1, 7))
    assert isinstance(value, list), value
    return tuple((int(height) // side, int(width) // side) for height, width in value)


def _internvl(given: Parameters, shipped: TileShape) -> TileShape:
    assert given["use_thumbnail"] is True
    assert given["image_size"] == shipped.side
    least, most = _number(given, "min_dynamic_patch"), _number(given, "max_dynamic_patch")
    return replace(shipped, least=least, most=most)


def _internvl_hf(given: Parameters, shipped: TileShape) -> TileShape:
    assert given["crop_to_patches"] is True
    assert given["size"] == shipped.side
    return replace(shipped, least=_number(given, "min_patches"), most=_number(given, "max_patches"))


def _internvl_sglang(given: Parameters, shipped: TileShape) -> TileShape:
    assert (given["engine"], given["use_thumbnail"], given["image_size"]) == ("sglang", True, 448)
    return replace(shipped, most=_number(given, "max_dynamic_patch"), engine=TileEngine.SGLANG)


def _squares(given: Parameters, shipped: TileShape) -> TileShape:
    """Families whose parameters are a tile's side and the most tiles, under whatever name."""
    sides = [given[name] for name in ("size", "image_size", "force_image_size", "scale_resolution") if name in given]
    assert sides in ([], [shipped.side]), given
    names = ("max_patches", "max_num_tiles", "max_image_tiles", "dynamic_hd", "num_crops", "max_slice_nums")
    most = [_number(given, name) for name in names if name in given]
    return replace(shipped, most=most[0]) if most else shipped


def _edge(given: Parameters, shipped: TileShape) -> TileShape:
    size = given["size"]
    assert isinstance(size, dict)
    side, tokens = _number(given, "max_image_size"), _number(given, "image_seq_len")
    return replace(shipped, side=side, tokens=tokens, edge=int(size["longest_edge"]))


def _llava_next(given: Parameters, shipped: TileShape) -> TileShape:
    side = _number(given, "size")
    return replace(shipped, side=side, pins=_sides(given["image_grid_pinpoints"], side))


def _llava_onevision(given: Parameters, shipped: TileShape) -> TileShape:
    most = int(str(given["vision_aspect_ratio"]).removeprefix("anyres_max_"))
    crowd_images = 2 if str(given["images"]).startswith("nested") else 0
    pins = _sides(given["image_grid_pinpoints"], shipped.side)
    return replace(shipped, most=most, tokens=_number(given, "num_image_tokens"), crowd_images=crowd_images, pins=pins)


def _deepseek_vl2(given: Parameters, shipped: TileShape) -> TileShape:
    assert given["candidate_resolutions"] == "23 of i*j<=9 x384"
    assert (len(shipped.pins), shipped.side, shipped.crowd_images) == (23, 384, 3)
    return shipped


def _deepseek_ocr(given: Parameters, shipped: TileShape) -> TileShape:
    side, view = _number(given, "image_size"), _number(given, "base_size")
    most = _number(given, "max_crops") if "max_crops" in given else shipped.most
    least = _number(given, "min_crops") if "min_crops" in given else shipped.least
    if not given["crop_mode"]:
        least = most = 1
    return replace(shipped, side=side, view_side=view, least=least, most=most)


def _molmo(given: Parameters, shipped: TileShape) -> TileShape:
    margins = given["overlap_margins"]
    assert isinstance(margins, list)
    margin = sum(margins) * _number(given, "image_patch_size")
    side = _number(given, "base_image_input_size")
    tokens = _number(given, "image_token_length") ** 2
    return replace(shipped, side=side, margin=margin, most=_number(given, "max_crops"), tokens=tokens)


def _step3(given: Parameters, shipped: TileShape) -> TileShape:
    return replace(
        shipped,
        side=_number(given, "patch_size"),
        tokens=_number(given, "num_patch_feature_size"),
        view_side=_number(given, "image_size"),
        view_tokens=_number(given, "num_image_feature_size"),
    )


_READERS: dict[str, Callable[[Parameters, TileShape], TileShape]] = {
    "internvl": _internvl,
    "internvl_hf": _internvl_hf,
    "internvl_sglang": _internvl_sglang,
    "llava_next": _llava_next,
    "llava_onevision": _llava_onevision,
    "idefics3": _edge,
    "smolvlm": _edge,
    "smolvlm2": _edge,
    "deepseek_vl2": _deepseek_vl2,
    "deepseek_ocr": _deepseek_ocr,
    "deepseek_ocr2": _deepseek_ocr,
    "molmo": _molmo,
    "step3_vl": _step3,
}
# fmt: off
_READERS |= dict.fromkeys((
    "aya_vision", "command_a_vision", "llama4", "llava_1_5", "minicpmv", "minicpmv4_6", "mllama", "nemotron_nano_v2_vl",
    "nemotron_nano_vl", "ovis2", "phi3_5_v", "phi4_mm",
), _squares)
# fmt: on
TILED = frozenset(_READERS)


def cut_of(row: Row, family: TiledFamily, size: Size, checkpoint: Checkpoint) -> Cut:
    """How an image of the row is cut, all of its request's images considered."""
    assert checkpoint.tiles is not None
    crowd = checkpoint.tiles.crowd_images
    if family.crowd_cutter is not None and 0 < crowd <= int(row["n_images"]):
        return family.crowd_cutter(size, checkpoint)
    return family.cut(size, checkpoint)


def grid_cell(row: Row, cut: Cut, alone: Cut) -> str:
    """The row's grid column as our cut fills it. `alone` is the cut of a single image, which some rows show."""
    tiles, views = cut.columns * cut.rows, (alone.columns * alone.rows + 1 if cut == alone else 1)
    named = {
        "across": cut.columns,
        "down": cut.rows,
        "tiles": tiles,
        "all": tiles + (tiles > 1),
        "pair": tiles + 1,
        "pairs": (tiles + 1) * int(row["n_images"]),
        "newlines": max(0, cut.rows - 1),
        "views": views,
        "pin": f"{alone.canvas.height}x{alone.canvas.width}",
        "canvas": cut.canvas,
        "patches": f"{cut.canvas.height // 14}x{cut.canvas.width // 14}",
    }
    return _CELLS[row["family"]].format(**named)


_CELLS = {
    "internvl": "tiles={across}x{down};n={all}",
    "internvl_hf": "tiles={across}x{down};n={all}",
    "aya_vision": "tiles={across}x{down};n={all}",
    "internvl_sglang": "n={all}",
    "nemotron_nano_vl": "n={all}",
    "nemotron_nano_v2_vl": "n={all}",
    "command_a_vision": "n={all}",
    "llama4": "tiles_hxw={down}x{across};n={all}",
    "mllama": "tiles_hxw={down}x{across};padded_tiles=4",
    "llava_1_5": "24x24",
    "llava_next": "pin_hxw={pin};n={views}",
    "llava_onevision": "pin_hxw={pin};n={views}",
    "idefics3": "rows{down}cols{across};n={all}",
    "smolvlm": "rows{down}cols{across};n={all}",
    "smolvlm2": "rows{down}cols{across};n={all}",
    "phi3_5_v": "hxw={down}x{across}",
    "phi4_mm": "hxw={down}x{across};crops={tiles}",
    "minicpmv": "slices={all};src={canvas}",
    "minicpmv4_6": "slices={all};src={patches}",
    "ovis2": "grid={down}x{across};n={all}",
    "deepseek_vl2": "tiles_wxh={across}x{down};pv={pairs}",
    "deepseek_ocr": "tiles_wxh={across}x{down}",
    "deepseek_ocr2": "tiles_wxh={across}x{down}",
    "molmo": "crops={pair}",
    "step3_vl": "patches={tiles};newlines={newlines}",
}
