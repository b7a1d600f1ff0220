"""From an image row's parameters to the numbers that we count with, for families that resize to a grid or a square."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.models.checkpoint import Checkpoint
from gateway.types import ImageTokens
from tests.golden.tables import Row, parameters

Parameters = dict[str, object]


def gridded(row: Row, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint under the row's parameters and counted as the row's engine does."""
    return _READERS[row["family"]](parameters(row), checkpoint)


def grid_cell(row: Row, price: ImageTokens, checkpoint: Checkpoint) -> str:
    """The row's grid column as our price of one of its images fills it."""
    _, rows, columns = price.grid
    crops = price.tokens // 256 - 1
    named = {
        "rows": rows,
        "columns": columns,
        "down": rows // checkpoint.merge,
        "across": columns // checkpoint.merge,
        "crops": crops,
        "text": int(crops > 0),
        "views": 1 if price.struct_tokens == 2 else price.struct_tokens - 2,
    }
    return _CELLS.get(row["family"], "t1h{rows}w{columns}").format(**named)


def _number(given: object, name: str) -> int:
    assert isinstance(given, dict)
    value = given[name]
    assert isinstance(value, int), name
    return value


def _check_cells(given: Parameters, checkpoint: Checkpoint, *names: str) -> None:
    """The row's patch and merge, under whatever name, are the checkpoint's."""
    found = [given[name] for name in names]
    assert found == [checkpoint.patch, checkpoint.merge][: len(found)], given


def _pixels(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    _check_cells(given, checkpoint, "patch_size", "hidden_stride" if "hidden_stride" in given else "merge_size")
    return checkpoint.with_(min_pixels=_number(given, "min_pixels"), max_pixels=_number(given, "max_pixels"))


def _edges(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    _check_cells(given, checkpoint, "patch_size", "merge_size")
    low, high = _number(given["size"], "shortest_edge"), _number(given["size"], "longest_edge")
    return checkpoint.with_(min_pixels=low, max_pixels=high)


def _two_frames(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    made = _edges(given, checkpoint)
    return made.with_(min_pixels=made.min_pixels // 2, max_pixels=made.max_pixels // 2)


def _kimi(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    _check_cells(given, checkpoint, "patch_size")
    assert given["merge_kernel_size"] in (2, [2, 2])
    limit = _number(given, "in_token_limit" if "in_token_limit" in given else "in_patch_limit")
    side = _number(given, "patch_limit_on_one_side") if "patch_limit_on_one_side" in given else 512
    made = checkpoint.with_(max_pixels=limit * checkpoint.patch**2)
    return replace(made, longest_side=side * checkpoint.patch)


def _longest_edge(family: str) -> Callable[[Parameters, Checkpoint], Checkpoint]:
    def read(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
        _check_cells(
            given, checkpoint, "patch_size" if "patch_size" in given else "image_patch_size", "spatial_merge_size"
        )
        longest = _number(given, "longest_edge" if "longest_edge" in given else "max_image_size")
        return replace(checkpoint.with_(max_pixels=longest**2), family=family)

    return read


def _gemma3(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    assert checkpoint.tiles is not None
    if not given["do_pan_and_scan"]:
        assert (given["image_seq_length"], given["size"]) == (checkpoint.tiles.tokens, checkpoint.tiles.side)
        return checkpoint
    assert given["pan_and_scan_min_crop_size"] == 256
    assert given["pan_and_scan_min_ratio_to_activate"] == 1.2
    return replace(checkpoint, tiles=replace(checkpoint.tiles, most=_number(given, "pan_and_scan_max_num_crops")))


def _gemma4(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    _check_cells(given, checkpoint, "patch_size", "pooling_kernel_size")
    return checkpoint.with_(max_pixels=_number(given, "max_soft_tokens") * checkpoint.factor**2)


def _square(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    assert checkpoint.tiles is not None
    side = _number(given, "size")
    tokens = _number(given, "image_seq_length") if "image_seq_length" in given else (side // checkpoint.patch) ** 2
    return replace(checkpoint, tiles=replace(checkpoint.tiles, side=side, tokens=tokens))


def _shared_budget(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    """Four tokens are kept back; the text counts too."""
    _check_cells(given, checkpoint, "patch_size")
    area = checkpoint.patch**2
    low, high = _number(given, "min_num_patches") * area, _number(given, "max_num_patches") * area
    budget = _number(given, "max_model_len") - _number(given, "text_prompt_length") - 4
    return replace(checkpoint.with_(min_pixels=low, max_pixels=high), image_budget_tokens=budget)


def _defaults(given: Parameters, checkpoint: Checkpoint) -> Checkpoint:
    assert given == {"defaults": "transformers"}
    return checkpoint


_READERS: dict[str, Callable[[Parameters, Checkpoint], Checkpoint]] = {
    "qwen2_5_omni": _pixels,
    "qwen3_omni": _pixels,
    "dots_ocr": _pixels,
    "ovis2_5": _pixels,
    "ernie4_5_vl": _edges,
    "paddleocr_vl": _edges,
    "glm4v": _two_frames,
    "glm46v": _two_frames,
    "kimi_vl": _kimi,
    "kimi_k25": _kimi,
    "pixtral_hf": _longest_edge("pixtral_hf"),
    "mistral3_hf": _longest_edge("pixtral_hf"),
    "pixtral_mistral": _longest_edge("pixtral_mistral"),
    "mistral3_mistral": _longest_edge("pixtral_mistral"),
    "gemma3": _gemma3,
    "gemma3n": _square,
    "gemma4": _gemma4,
    "paligemma": _square,
    "nemotron3_nano_omni": _shared_budget,
    "lfm2_vl": _defaults,
}
_CELLS = {
    "kimi_vl": "h{rows}w{columns}",
    "pixtral_hf": "h{down}w{across}",
    "mistral3_hf": "h{down}w{across}",
    "pixtral_mistral": "h{down}w{across}",
    "mistral3_mistral": "h{down}w{across}",
    "gemma3": "crops={crops};text={text}",
    "gemma3n": "{down}x{across}",
    "gemma4": "w{across}h{down}",
    "paligemma": "{down}x{across}",
    "nemotron3_nano_omni": "w{columns}h{rows}",
    "lfm2_vl": "n={views}",
}
GRIDDED = frozenset(_READERS)
