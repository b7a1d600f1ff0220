"""Every row of the oracle's tables against our arithmetic: ``pytest tests/golden --oracle DIR`` takes any directory.

The tables were computed by the models' own processors (transformers 5.19.0, vLLM 0.32.0, SGLang 0.5.23,
mistral_common 1.13.1) and by vLLM's own cache specs; `oracle/` holds copies. Tables are known by their header row.
The `..._edges.csv` are ours: the same processors' own functions, without pixels, at shapes that were chosen to be
awkward (strips, one-pixel sides, multiples of a cell or tile and a pixel beside them, ties, areas at a limit; clips of
odd rates and lengths).
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models import kv
from gateway.models.closed import closed_profile
from gateway.models.families import family_of
from gateway.models.families.tiled import TiledFamily
from gateway.models.positions import next_position, position_delta
from gateway.models.video import Clip, rules_of, video_tokens
from gateway.types import Size
from tests.golden import grids
from tests.golden.served import CATALOG, our_name, served
from tests.golden.tables import Group, Kind, Row, groups_in, numbers
from tests.golden.tilings import cut_of, grid_cell

# A checkpoint to count positions with; the tables name only its family.
_POSITIONED = {
    "qwen2_vl": "Qwen/Qwen2-VL-7B-Instruct",
    "qwen2_5_vl": "Qwen/Qwen2.5-VL-7B-Instruct",
    "qwen3_vl": "Qwen/Qwen3-VL-8B-Instruct",
}
# Tables name closed models in words; the profile that each means.
_CLOSED = {
    "Claude before 4.7": "claude-sonnet-4-5",
    "Claude 4.7 and later": "claude-opus-4-7",
    "older doc": "claude-by-area",
    "Gemini 2.x": "gemini-2.5-flash",
    "Gemini 3 high": "gemini-3-pro",
}
_GRID = re.compile(r"t(\d+)h(\d+)w(\d+)")


def test_the_directory_holds_tables(directory: Path) -> None:
    assert groups_in(directory), f"no file in {directory} has the header of one of {[kind.name for kind in Kind]}"


def test_images_cost_what_the_processor_says(images: Group) -> None:
    family, checkpoint = served(images.first)
    for row in images.rows:
        size = Size(int(row["width"]), int(row["height"]))
        place = f"{images.name} {size} n={row['n_images']}"
        if row["tokens"] == "ERROR":
            for question in (family.image_tokens, family.engine_size):
                with pytest.raises(AspectRatioExceeded):
                    question(size, checkpoint)
            continue
        prices = family.request_tokens([size] * int(row["n_images"]), checkpoint)
        found = {
            "tokens": sum(price.tokens for price in prices),
            "struct_tokens": sum(price.struct_tokens for price in prices),
            "vit_patches": sum(price.vit_patches for price in prices),
        }
        told = dict(zip(found, numbers(row, *found), strict=True))
        assert found == {name: found[name] if value is None else value for name, value in told.items()}, place
        if grid := _GRID.fullmatch(row.get("grid_or_tiles", "")):
            assert prices[0].grid == tuple(map(int, grid.groups())), place
        made = family.engine_size(size, checkpoint)
        if row["family"] in grids.GRIDDED:
            if cell := row.get("grid_or_tiles"):
                assert grids.grid_cell(row, prices[0], checkpoint) == cell, place
            if row["n_images"] != "1":  # the images may have shrunk each other
                made = Size(prices[0].grid[2] * checkpoint.patch, prices[0].grid[1] * checkpoint.patch)
        elif isinstance(family, TiledFamily):
            cut = cut_of(row, family, size, checkpoint)
            made = cut.canvas
            if row.get("grid_or_tiles"):
                assert grid_cell(row, cut, family.cut(size, checkpoint)) == row["grid_or_tiles"], place
        resized = numbers(row, "resized_w", "resized_h")
        if None not in resized:
            assert (made.width, made.height) == resized, place


def test_every_family_is_covered(directory: Path) -> None:
    groups = [group for group in groups_in(directory) if group.kind is Kind.IMAGES]
    missing = {group.first["family"] for group in groups if our_name(group.first["family"]) is None}
    assert not missing, sorted(missing)


def test_positions_advance_as_the_model_says(positions: Group) -> None:
    """The tables' grids are in patches; a raster of exactly that grid must advance the position as given."""
    for row in positions.rows:
        checkpoint = CATALOG.find(_POSITIONED[row["family"]]).checkpoint.with_(min_pixels=1)
        grids = [tuple(map(int, grid.split("x"))) for grid in row["grid_thw_patches"].split("+")]
        sizes = [Size(columns * checkpoint.patch, lines * checkpoint.patch) for _, lines, columns in grids]
        prices = family_of(checkpoint.family).request_tokens(sizes, checkpoint)
        tokens = sum(price.tokens for price in prices)
        assert [price.grid for price in prices] == grids, row
        assert tokens == int(row["image_tokens"]), row
        assert sum(price.position_advance for price in prices) == int(row["position_advance_of_images"]), row
        length, following, delta = numbers(row, "sequence_len", "next_position", "mrope_position_delta")
        if length is not None:
            assert following == next_position(length - tokens, prices), row
        assert delta in {None, position_delta(prices)}, row


def test_videos_cost_what_the_processor_says(videos: Group) -> None:
    checkpoint = CATALOG.find(videos.first["checkpoint"]).checkpoint
    rules = rules_of(checkpoint)
    assert rules is not None
    for row in videos.rows:
        given = ast.literal_eval(row["params"])
        assert (rules.frames_per_s, rules.min_frames, rules.max_frames) == (
            given["fps"],
            given["min_frames"],
            given["max_frames"],
        )
        limits = (given["size"]["shortest_edge"], given["size"]["longest_edge"])
        assert (rules.min_pixels, rules.max_pixels) == limits, row
        clip = Clip(Size(int(row["width"]), int(row["height"])), int(row["total_frames"]), float(row["fps"]))
        price = video_tokens(clip, checkpoint, rules)
        expected = numbers(row, "sampled_frames", "grid_t", "tokens", "tokens_per_temporal_patch")
        assert (price.sampled_frames, price.grid[0], price.tokens, price.tokens_per_patch) == expected, row
        if grid := _GRID.fullmatch(row.get("verified", "")):
            assert price.grid == tuple(map(int, grid.groups())), row


def test_closed_apis_charge_what_their_vendors_say(closed: Group) -> None:
    name = closed.first["model"]
    level = closed.first["params"].partition(",")[0]
    for model in [_CLOSED[name]] if name in _CLOSED else name.split("/"):
        profile = closed_profile(model)
        assert profile is not None, model
        for row in closed.rows:
            size = Size(int(row["width"]), int(row["height"]))
            price = profile.image_tokens(size, level if level in profile.levels else None)
            assert price.tokens * int(row["n_images"]) == int(row["tokens"]), (closed.name, size)


def shape_of(row: Row) -> kv.KvShape:
    """The shape that a table's row describes."""
    config = json.loads(row["config_json"])
    return kv.KvShape(
        full_layers=config["full_layers"],
        kv_heads=config["kv_heads"],
        head_dim=config["head_dim"],
        window_layers=tuple(kv.WindowLayers(*window) for window in config["window_layers"]),
        latent_dim=config["mla_dim"],
        linear=None if config["gdn"] is None else kv.LinearLayers(*config["gdn"]),
        cross=None if config["cross_layers"] is None else kv.CrossLayers(*config["cross_layers"]),
    )


def test_kv_bytes_are_what_the_engine_allocates(shapes: Group) -> None:
    for row in shapes.rows:
        shape = shape_of(row)
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
        told = dict(zip(found, numbers(row, *found), strict=True))
        assert found == {name: found[name] if value is None else value for name, value in told.items()}, row["model"]
        match = CATALOG.find(row["model"].partition(" (")[0])
        if match.how == "exact" and match.checkpoint.kv is not None:
            assert match.checkpoint.kv == shape, row["model"]


def test_the_copies_are_whole() -> None:
    """How many rows of each kind are shipped, so that a lost file or column cannot pass."""
    rows: dict[Kind, int] = {}
    for group in groups_in(Path(__file__).parent / "oracle"):
        rows[group.kind] = rows.get(group.kind, 0) + len(group.rows)
    assert rows == {
        Kind.IMAGES: 14_118 + 1_418,
        Kind.KV: 44,
        Kind.POSITIONS: 63,
        Kind.VIDEOS: 60 + 80,
        Kind.CLOSED: 2_352,
    }
