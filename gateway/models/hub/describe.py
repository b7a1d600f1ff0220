"""From a model's configuration files to the checkpoint that we count with.

Decided here: which family a ``model_type`` belongs to, and which fields of the processor's configuration change how
images are counted. What the files do not say keeps the value of the series that the family is shipped in. Not decided
here: where the files are, and what the operator says otherwise (which wins).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.hub.layers import context_tokens, kv_shape
from gateway.models.hub.reading import ConfigProblem, Section
from gateway.models.table import Series, Table

# ``model_type`` of config.json, as transformers 5.19.0 and vLLM 0.32.0 have them -> series of checkpoints.toml.
SERIES_OF: Final = MappingProxyType({
    "qwen2_vl": "Qwen2-VL", "qwen2_5_vl": "Qwen2.5-VL", "qwen3_vl": "Qwen3-VL", "qwen3_vl_moe": "Qwen3-VL",
    "qwen3_5": "Qwen3.5", "qwen3_5_moe": "Qwen3.5", "qwen2_5_omni": "Qwen2.5-Omni", "qwen3_omni_moe": "Qwen3-Omni",
    "dots_ocr": "dots.ocr", "glm4v": "GLM-4.1V", "glm4v_moe": "GLM-4.5V", "glm46v": "GLM-4.6V",
    "ernie4_5_moe_vl": "ERNIE-4.5-VL", "ernie4_5_vl_moe": "ERNIE-4.5-VL", "paddleocr_vl": "PaddleOCR-VL",
    "kimi_vl": "Kimi-VL", "kimi_k25": "Kimi-K2.5", "pixtral": "Pixtral", "mistral3": "Mistral-Small-3",
    "internvl_chat": "InternVL2", "internvl": "InternVL3", "llava": "LLaVA-1.5", "llava_next": "LLaVA-NeXT",
    "llava_onevision": "LLaVA-OneVision", "mllama": "Llama-3.2-Vision", "llama4": "Llama-4", "idefics3": "Idefics3",
    "smolvlm": "SmolVLM", "aya_vision": "Aya-Vision", "cohere2_vision": "Command-A-Vision", "phi3_v": "Phi-3.5-vision",
    "phi4mm": "Phi-4-multimodal", "phi4_multimodal": "Phi-4-multimodal", "minicpmv": "MiniCPM-V",
    "minicpmv4_6": "MiniCPM-V-4.6", "deepseek_vl_v2": "DeepSeek-VL2", "molmo": "Molmo", "ovis2": "Ovis2",
    "ovis2_5": "Ovis2.5", "step3_vl": "Step3", "gemma3": "Gemma-3", "gemma3n": "Gemma-3n", "gemma4": "Gemma-4",
    "paligemma": "PaliGemma-224", "lfm2_vl": "LFM2-VL",
})  # fmt: skip
# A configuration with one of these looks at images, whatever its type.
_SEES: Final = ("vision_config", "visual", "vit_config", "vision_tower", "mm_vision_tower", "vision_model")
_MOST_TILES: Final = (
    "max_dynamic_patch", "max_patches", "max_num_tiles", "max_image_tiles", "dynamic_hd", "num_crops",
    "max_slice_nums", "max_crops",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's parsed files; ``processor`` is None where the folder has no image processor's configuration."""

    config: Section
    processor: Section | None


def image_processor(file: Section) -> Section:
    """The image processor's part: newer processor_config.json files hold it as a section of its own."""
    return file.section("image_processor") or file


def described(name: str, files: ModelFiles, table: Table) -> tuple[Checkpoint, str] | None:
    """The checkpoint that a model's files describe, and a note for people; ``None`` for an image family unknown to us.

    Raises `ConfigProblem` naming file and field.
    """
    config = files.config
    kind = config.needed_text("model_type")
    if kind == "llava" and _vision_type(config) == "pixtral":
        kind = "pixtral"
    series = SERIES_OF.get(kind)
    if series is None or series not in table.series:
        if any(config.has(section) for section in _SEES):
            return None
        prototype = _text_only(table)
    else:
        prototype = _like(name, table.series[series], table)
    checkpoint = replace(
        prototype, name=name, kv=kv_shape(config), context_tokens=context_tokens(config) or prototype.context_tokens
    )
    reader = _READERS.get(checkpoint.family, _tiled if checkpoint.tiles is not None else None)
    if reader is not None:
        checkpoint = reader(checkpoint, config, files.processor or Section("preprocessor_config.json", {}))
    missing = (
        "" if files.processor is not None or reader is None else "; no image processor's file: its shipped numbers"
    )
    return checkpoint, f"{series or 'text only'} by its config.json{missing}"


def _vision_type(config: Section) -> str | None:
    vision = config.section("vision_config")
    return None if vision is None else vision.text("model_type")


def _text_only(table: Table) -> Checkpoint:
    found = next(s.prototype for s in table.series.values() if s.prototype.family == "text_only")
    return replace(found, template=table.series["unknown"].prototype.template)


def _like(name: str, series: Series, table: Table) -> Checkpoint:
    """The series' checkpoint of this very name, whose compute is known too; else the series' prototype."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    same = (c for c, of in table.checkpoints if of is series and c.name.rsplit("/", 1)[-1].lower() == last)
    return next(same, series.prototype)


def _pixels(checkpoint: Checkpoint, _config: Section, processor: Section) -> Checkpoint:
    """Areas: ``min_pixels`` and ``max_pixels`` win over the edges of ``size``, which are areas here in spite of it."""
    size = processor.section("size")
    low = processor.whole("min_pixels") or (None if size is None else size.whole("shortest_edge", "min_pixels"))
    high = processor.whole("max_pixels") or (None if size is None else size.whole("longest_edge", "max_pixels"))
    if low is not None and high is not None and low > high:
        raise ConfigProblem(f"{processor.named('min_pixels')}: {low} is more than max_pixels, which is {high}")
    patched = replace(
        checkpoint,
        patch=processor.whole("patch_size") or checkpoint.patch,
        merge=processor.whole("merge_size", "hidden_stride") or checkpoint.merge,
    )
    return patched.with_(min_pixels=low, max_pixels=high)


def _two_frames(checkpoint: Checkpoint, config: Section, processor: Section) -> Checkpoint:
    """GLM: areas for two frames, and nothing but ``size`` is read."""
    size = processor.section("size")
    kept = {name: processor.fields[name] for name in ("patch_size", "merge_size") if processor.has(name)}
    made = _pixels(checkpoint, config, Section(processor.place, kept))
    if size is None:
        return made
    low, high = size.whole("shortest_edge"), size.whole("longest_edge")
    return made.with_(
        min_pixels=None if low is None else max(1, low // 2), max_pixels=None if high is None else max(1, high // 2)
    )


def _patch_limit(checkpoint: Checkpoint, _config: Section, processor: Section) -> Checkpoint:
    """Kimi: a limit of patches."""
    section = processor.section("media_proc_cfg") or processor
    limit = section.whole("in_token_limit", "in_patch_limit")
    return checkpoint if limit is None else checkpoint.with_(max_pixels=limit * checkpoint.patch**2)


def _longest_edge(checkpoint: Checkpoint, config: Section, processor: Section) -> Checkpoint:
    """Pixtral and Mistral 3 by their transformers files, which round down where Mistral's own format rounds."""
    size = processor.section("size")
    longest = None if size is None else size.whole("longest_edge")
    is_pair = isinstance(processor.fields.get("patch_size"), Mapping)
    patch = processor.section("patch_size") if is_pair else None
    side = processor.whole("patch_size") if patch is None else patch.whole("height")
    made = replace(
        checkpoint,
        family="pixtral_hf",
        patch=side or checkpoint.patch,
        merge=config.whole("spatial_merge_size") or checkpoint.merge,
    )
    return made.with_(max_pixels=None if longest is None else longest**2)


def _scaled_edge(checkpoint: Checkpoint, config: Section, processor: Section) -> Checkpoint:
    """Idefics3 and SmolVLM: the edge that every image is scaled to, and a tile's side."""
    assert checkpoint.tiles is not None, "these families are cut into tiles"
    size, tile = processor.section("size"), processor.section("max_image_size")
    edge = None if size is None else size.whole("longest_edge")
    side = (None if tile is None else tile.whole("longest_edge")) or checkpoint.tiles.side
    vision, scale = config.section("vision_config"), config.whole("scale_factor")
    patch = (None if vision is None else vision.whole("patch_size")) or checkpoint.patch
    merge = scale or checkpoint.merge
    tokens = processor.whole("image_seq_len") or (side // (patch * merge)) ** 2
    shape = replace(checkpoint.tiles, side=side, edge=edge or checkpoint.tiles.edge, tokens=tokens)
    return replace(checkpoint, tiles=shape, patch=patch, merge=merge)


def _square(checkpoint: Checkpoint, config: Section, _processor: Section) -> Checkpoint:
    """LLaVA 1.5 and PaliGemma: one square of the vision tower's own side."""
    assert checkpoint.tiles is not None, "one square is one tile"
    vision = config.section("vision_config")
    side = None if vision is None else vision.whole("image_size")
    if side is None or side == checkpoint.tiles.side:
        return checkpoint
    patch = (None if vision is None else vision.whole("patch_size")) or checkpoint.patch
    shape = replace(checkpoint.tiles, side=side, tokens=(side // patch) ** 2)
    return replace(checkpoint, tiles=shape, patch=patch).with_(min_pixels=side**2, max_pixels=side**2)


def _soft_tokens(checkpoint: Checkpoint, _config: Section, processor: Section) -> Checkpoint:
    """Gemma 4: the budget that every image fills."""
    budget = processor.whole("max_soft_tokens")
    return checkpoint if budget is None else checkpoint.with_(max_pixels=budget * checkpoint.factor**2)


def _pan_and_scan(checkpoint: Checkpoint, _config: Section, processor: Section) -> Checkpoint:
    """Gemma 3: crops only where the file says so."""
    most = processor.whole("pan_and_scan_max_num_crops") or 4
    return _with_tiles(checkpoint, most, processor) if processor.flag("do_pan_and_scan", default=False) else checkpoint


def _tiled(checkpoint: Checkpoint, config: Section, processor: Section) -> Checkpoint:
    """Tile families: how many tiles at most, under the name that each gives it; the processor's file wins."""
    for section in (processor, config):
        if (most := section.whole(*_MOST_TILES)) is not None:
            return _with_tiles(checkpoint, most, section)
    return checkpoint


def _with_tiles(checkpoint: Checkpoint, most: int, section: Section) -> Checkpoint:
    try:
        return checkpoint.with_tiles(most)
    except ValueError as error:
        raise ConfigProblem(f"{section.place}: {error}") from None


_Reader = Callable[[Checkpoint, Section, Section], Checkpoint]
_READERS: Final[Mapping[str, _Reader]] = MappingProxyType({
    **dict.fromkeys(("qwen2_vl", "qwen3_vl", "ernie4_5_vl", "paddleocr_vl", "ovis2_5"), _pixels),
    **dict.fromkeys(("pixtral_hf", "pixtral_mistral"), _longest_edge),
    **dict.fromkeys(("idefics3", "smolvlm"), _scaled_edge),
    **dict.fromkeys(("llava_1_5", "paligemma"), _square),
    **dict.fromkeys(("kimi_vl", "kimi_k25"), _patch_limit),
    "glm4v": _two_frames, "gemma4": _soft_tokens, "gemma3": _pan_and_scan,
})  # fmt: skip
