"""Every row of the oracle's tables that belongs to a covered family, against our arithmetic.

The tables in `oracle/` were computed by the models' own processors (transformers 5.19.0) and by vLLM's own cache specs.
A family that is not covered yet stands in `NOT_COVERED`; a row of a family in neither list fails.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models import kv
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.types import Size

ORACLE = Path(__file__).parent / "oracle"

# The tables' family -> ours, and how many rows there are, so that a lost file or column cannot pass.
COVERED = {
    "qwen2_vl": ("qwen2_vl", 394),
    "qwen2_5_vl": ("qwen2_vl", 528),
    "qwen3_vl": ("qwen3_vl", 570),
    "qwen3_5": ("qwen3_vl", 528),
}
# fmt: off
NOT_COVERED = frozenset({
    "aya_vision", "command_a_vision", "deepseek_ocr", "deepseek_ocr2", "deepseek_vl2", "dots_ocr", "ernie4_5_vl",
    "gemma3", "gemma3n", "gemma4", "glm46v", "glm4v", "idefics3", "internvl", "internvl_hf", "internvl_sglang",
    "kimi_k25", "kimi_vl", "lfm2_vl", "llama4", "llava_1_5", "llava_next", "llava_onevision", "minicpmv",
    "minicpmv4_6", "mistral3_hf", "mistral3_mistral", "mllama", "molmo", "nemotron3_nano_omni", "nemotron_nano_v2_vl",
    "nemotron_nano_vl", "ovis2", "ovis2_5", "paddleocr_vl", "paligemma", "phi3_5_v", "phi4_mm", "pixtral_hf",
    "pixtral_mistral", "qwen2_5_omni", "qwen3_omni", "smolvlm", "smolvlm2", "step3_vl",
})
# fmt: on
CATALOG = shipped_catalog()


@dataclass(frozen=True)
class Fact:
    """One row of `image_tokens.csv`; `None` tokens mean that the processor raises."""

    name: str
    size: Size
    images: int
    tokens: int | None
    grid: str
    resized: Size | None
    patches: int | None
    struct_tokens: int | None


def _read(name: str) -> list[dict[str, str]]:
    with (ORACLE / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _checkpoint(row: dict[str, str]) -> Checkpoint:
    """The shipped checkpoint under the row's pixel limits; its patch and merge must be the row's."""
    match = CATALOG.find(row["checkpoint"])
    limits = json.loads(row["params_json"])
    assert match.how == "exact", row["checkpoint"]
    assert (match.checkpoint.patch, match.checkpoint.merge) == (limits["patch_size"], limits["merge_size"])
    return match.checkpoint.with_(min_pixels=limits["min_pixels"], max_pixels=limits["max_pixels"])


def _fact(row: dict[str, str]) -> Fact:
    failed = row["tokens"] == "ERROR"
    return Fact(
        name=f"{row['checkpoint']} {row['params_json']} {row['width']}x{row['height']} n={row['n_images']}",
        size=Size(int(row["width"]), int(row["height"])),
        images=int(row["n_images"]),
        tokens=None if failed else int(row["tokens"]),
        grid=row["grid_or_tiles"],
        resized=None if failed else Size(int(row["resized_w"]), int(row["resized_h"])),
        patches=None if failed else int(row["vit_patches"]),
        struct_tokens=None if failed else int(row["struct_tokens"]),
    )


def test_the_list_of_families_is_complete() -> None:
    families = {row["family"] for row in _read("image_tokens.csv")}
    assert families == set(COVERED) | NOT_COVERED


@pytest.mark.parametrize("family_name", COVERED)
def test_images_cost_what_the_processor_says(family_name: str) -> None:
    ours, expected_rows = COVERED[family_name]
    rows = [row for row in _read("image_tokens.csv") if row["family"] == family_name]
    assert len(rows) == expected_rows
    for row in rows:
        _check(_fact(row), _checkpoint(row), ours)


def _check(fact: Fact, checkpoint: Checkpoint, family_name: str) -> None:
    assert checkpoint.family == family_name, fact.name
    family = family_of(checkpoint.family)
    if fact.tokens is None:
        for question in (family.image_tokens, family.engine_size, family.normalised):
            with pytest.raises(AspectRatioExceeded):
                question(fact.size, checkpoint)
        return
    prices = family.request_tokens([fact.size] * fact.images, checkpoint)
    _, rows, columns = prices[0].grid
    assert sum(price.tokens for price in prices) == fact.tokens, fact.name
    assert sum(price.struct_tokens for price in prices) == fact.struct_tokens, fact.name
    assert sum(price.vit_patches for price in prices) == fact.patches, fact.name
    assert f"t1h{rows}w{columns}" == fact.grid, fact.name
    assert family.engine_size(fact.size, checkpoint) == fact.resized, fact.name


def test_positions_advance_as_the_model_says() -> None:
    """The tables' grids are in patches; a raster of exactly that grid must advance the position as given."""
    named = {"qwen2_vl": "Qwen/Qwen2-VL-7B-Instruct", "qwen2_5_vl": "Qwen/Qwen2.5-VL-7B-Instruct"}
    named["qwen3_vl"] = "Qwen/Qwen3-VL-8B-Instruct"
    rows = _read("mrope_positions.csv")
    assert len(rows) == 63
    for row in rows:
        checkpoint = CATALOG.find(named[row["family"]]).checkpoint.with_(min_pixels=1)
        grids = [tuple(map(int, grid.split("x"))) for grid in row["grid_thw_patches"].split("+")]
        sizes = [Size(columns * checkpoint.patch, lines * checkpoint.patch) for _, lines, columns in grids]
        prices = family_of(checkpoint.family).request_tokens(sizes, checkpoint)
        tokens = sum(price.tokens for price in prices)
        advance = sum(price.position_advance for price in prices)
        assert [price.grid for price in prices] == grids, row
        assert (tokens, advance) == (int(row["image_tokens"]), int(row["position_advance_of_images"])), row
        assert advance - tokens == int(row["mrope_position_delta"]), row


def _shape(config: dict[str, object]) -> kv.KvShape:
    def numbers(key: str) -> list[int] | None:
        value = config[key]
        assert value is None or isinstance(value, list)
        return value

    linear, cross, windows = numbers("gdn"), numbers("cross_layers"), config["window_layers"]
    assert isinstance(windows, list)
    latent, full_layers = config["mla_dim"], config["full_layers"]
    kv_heads, head_dim = config["kv_heads"], config["head_dim"]
    assert isinstance(full_layers, int)
    assert isinstance(kv_heads, int)
    assert isinstance(head_dim, int)
    assert latent is None or isinstance(latent, int)
    return kv.KvShape(
        full_layers=full_layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        window_layers=tuple(kv.WindowLayers(*window) for window in windows),
        latent_dim=latent,
        linear=None if linear is None else kv.LinearLayers(*linear),
        cross=None if cross is None else kv.CrossLayers(*cross),
    )


def test_kv_bytes_are_what_the_engine_allocates() -> None:
    rows = _read("kv_bytes.csv")
    assert len(rows) == 44
    for row in rows:
        shape = _shape(json.loads(row["config_json"]))
        found = {
            "bytes_per_token": kv.bytes_per_token(shape),
            "bytes_per_token_global": kv.growing_bytes_per_token(shape),
            "bytes_per_token_local": kv.window_bytes_per_token(shape),
            "local_cap_bytes": kv.window_limit_bytes(shape),
            "fixed_bytes_per_seq": kv.state_bytes_per_sequence(shape),
            "cross_bytes_per_encoder_token": kv.bytes_per_encoder_token(shape),
            "bytes_per_token_fp8": kv.bytes_per_token(shape, element_bytes=1),
            "vllm_block_tokens": kv.block_tokens(shape),
        }
        assert found == {name: int(row[name]) for name in found}, row["model"]


def test_the_catalogue_has_the_tables_kv_shapes() -> None:
    """Where both know a checkpoint, the shipped numbers are the table's."""
    checked = 0
    for row in _read("kv_bytes.csv"):
        match = CATALOG.find(row["model"])
        if match.how != "exact":
            continue
        assert match.checkpoint.kv == _shape(json.loads(row["config_json"])), row["model"]
        checked += 1
    assert checked == 15
