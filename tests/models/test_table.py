from __future__ import annotations

from importlib.resources import files

import pytest

from gateway.models.table import TableError, packaged_table, read_table

SHIPPED = files("gateway.models").joinpath("checkpoints.toml").read_text(encoding="utf-8")


def test_the_shipped_table_has_all_sizes_of_the_covered_series() -> None:
    table = packaged_table()
    sizes: dict[str, int] = {}
    for _, series in table.checkpoints:
        sizes[series.name] = sizes.get(series.name, 0) + 1
    qwen = {"Qwen2-VL": 3, "Qwen2.5-VL": 4, "Qwen3-VL": 6, "Qwen3.5": 8, "Qwen3.6": 2, "Llama-3.1": 3}
    assert {name: sizes[name] for name in qwen} == qwen
    assert set(sizes) == set(table.series) - {"unknown"}


def test_every_vision_checkpoint_is_complete() -> None:
    for checkpoint, series in packaged_table().checkpoints:
        assert checkpoint.kv is not None
        assert checkpoint.decoder is not None
        assert checkpoint.decoder.attention_layers == checkpoint.kv.full_layers, checkpoint.name
        if checkpoint.kv.latent_dim is None:  # a latent is no head
            assert checkpoint.decoder.head_dim == checkpoint.kv.head_dim, checkpoint.name
        assert (checkpoint.encoder is not None) is (series.prototype.patch > 0), checkpoint.name


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ('family = "qwen2_vl"', 'family = "qwen9_vl"', r"series\.Qwen2-VL\.family.*qwen9_vl"),
        ('template = "chatml_default"', 'template = "none"', r"series\.Qwen2-VL\.template.*none"),
        ("min_pixels = 3136", "min_pixels = -1", r"series\.Qwen2-VL\.min_pixels.*-1"),
        ("min_pixels = 3136", "min_pixles = 3136", r"series\.Qwen2-VL.*min_pixles"),
        ("max_ratio = 200", "max_ratio = inf", r"series\.Qwen2-VL\.max_ratio"),
        ("min_pixels = 3136\n", "", r"series\.Qwen2-VL: min_pixels is missing"),
        ('sglang_family = "pixtral_hf"', 'sglang_family = "pixtral"', r"sglang_family: no family is called 'pixtral'"),
        ("longest_side = 7168", 'longest_side = "7168"', r"series\.Kimi-VL\.longest_side"),
        ("window_tokens = 1024", "window_token = 1024", r"google/gemma-3-4b-it\.windows\.0: unknown key window_token"),
        ("kv_heads = 2,", 'kv_heads = "2",', r"checkpoints\.Qwen/Qwen2-VL-2B-Instruct\.kv\.kv_heads"),
        ("kv_heads = 2, ", "", r"Qwen2-VL-2B-Instruct\.kv: kv_heads is missing"),
        ('encoder = "qwen2_vit"', 'encoder = "vit"', r"Qwen2-VL-2B-Instruct: vit"),
        ('series = "Qwen2-VL"', 'series = "Qwen1-VL"', r"Qwen2-VL-2B-Instruct: Qwen1-VL"),
        ("active_billion = 1.31,", 'active_billion = "1",', r"Qwen2-VL-2B-Instruct\.decoder\.active_billion"),
        ("active_billion = 1.31, ", "", r"Qwen2-VL-2B-Instruct: active_billion"),
        ("most = 12,", "most = -12,", r"series\.InternVL2\.tiles\.most.*-12"),
        ("tiles = { side = 448, most", "tiles = { edgy = 448, most", r"series\.InternVL2\.tiles: unknown key edgy"),
        ("pins = [[1, 2],", "pins = [[1, 0],", r"series\.LLaVA-NeXT\.tiles\.pins\.0"),
        ("pins = [[1, 2],", "pins = [7,", r"series\.LLaVA-NeXT\.tiles\.pins\.0"),
        ("cross = { layers = 8,", "cross = { layer = 8,", r"Llama-3\.2-11B-Vision-Instruct\.cross: unknown key layer"),
        ("[templates.chatml] ", "[templatez]\n[templates.chatml] ", r"checkpoints\.toml: unknown key templatez"),
        ("[templates.chatml] ", "[templates.chatml ", r"checkpoints\.toml: "),
    ],
)
def test_a_broken_table_names_the_place(old: str, new: str, names: str) -> None:
    assert old in SHIPPED
    with pytest.raises(TableError, match=names):
        read_table(SHIPPED.replace(old, new, 1))


@pytest.mark.parametrize("section", ["templates", "encoders", "series", "checkpoints"])
def test_a_missing_section_is_named(section: str) -> None:
    others = "\n".join(
        f"{name} = {{}}" for name in ("checkpoints", "encoders", "series", "templates") if name != section
    )
    with pytest.raises(TableError, match=f"{section} is missing"):
        read_table(others)
