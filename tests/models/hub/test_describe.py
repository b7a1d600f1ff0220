"""A checkpoint from a model's own files: its family by type, its numbers by the processor's fields, faults by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.models.catalog import MatchHow, ModelOverride, shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.models.hub.describe import SERIES_OF, ModelFiles, described, image_processor
from gateway.models.hub.reading import ConfigProblem, Section, read_json
from gateway.models.table import packaged_table
from gateway.types import Size

TABLE = packaged_table()
TEXT = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}


def files(config: dict[str, Any], processor: dict[str, Any] | None = None) -> ModelFiles:
    read = None if processor is None else read_json("preprocessor_config.json", json.dumps(processor))
    return ModelFiles(read_json("config.json", json.dumps({"text_config": TEXT} | config)), read)


def made(config: dict[str, Any], processor: dict[str, Any] | None = None, name: str = "mine") -> Checkpoint:
    found = described(name, files(config, processor), TABLE)
    assert found is not None
    return found[0]


def tokens(checkpoint: Checkpoint, width: int, height: int) -> int:
    return family_of(checkpoint.family).image_tokens(Size(width, height), checkpoint).tokens


def test_every_type_has_a_series_of_the_table() -> None:
    assert set(SERIES_OF.values()) <= set(TABLE.series)


@pytest.mark.parametrize("kind", sorted(SERIES_OF))
def test_a_bare_configuration_counts_as_its_series_is_shipped(kind: str) -> None:
    checkpoint = made({"model_type": kind, "vision_config": {}})
    prototype = TABLE.series[SERIES_OF[kind]].prototype
    assert checkpoint.kv is not None
    assert checkpoint.kv.full_layers == 36
    if prototype.family != "pixtral_mistral":
        assert tokens(checkpoint, 1280, 720) == tokens(prototype, 1280, 720)


@pytest.mark.parametrize(
    ("config", "processor", "count"),
    [
        ({"model_type": "qwen3_vl"}, {"min_pixels": 65_536, "max_pixels": 262_144}, 252),
        ({"model_type": "qwen3_vl"}, {"size": {"shortest_edge": 65_536, "longest_edge": 262_144}}, 252),
        ({"model_type": "qwen2_vl"}, {"patch_size": 16, "merge_size": 2}, 880),
        ({"model_type": "glm4v"}, {"size": {"shortest_edge": 12_544, "longest_edge": 401_408}}, 252),
        ({"model_type": "mistral3", "spatial_merge_size": 2}, {"size": {"longest_edge": 700}, "patch_size": 14}, 375),
        ({"model_type": "mistral3"}, {"size": {"longest_edge": 700}, "patch_size": {"height": 14, "width": 14}}, 375),
        ({"model_type": "internvl_chat", "max_dynamic_patch": 4}, None, 768),
        ({"model_type": "internvl"}, {"max_patches": 4}, 768),
        ({"model_type": "llama4"}, {"max_patches": 1}, 144),
        (
            {"model_type": "smolvlm", "scale_factor": 4, "vision_config": {"patch_size": 16}},
            {"size": {"longest_edge": 1024}, "max_image_size": {"longest_edge": 512}},
            320,
        ),
        ({"model_type": "paligemma", "vision_config": {"image_size": 448, "patch_size": 14}}, None, 1024),
        ({"model_type": "gemma4"}, {"max_soft_tokens": 70}, 66),
        ({"model_type": "gemma3"}, {"do_pan_and_scan": True}, 768),
        ({"model_type": "llava", "vision_config": {"model_type": "pixtral"}}, {"size": {"longest_edge": 1024}}, 2304),
    ],
)
def test_what_the_processor_says_is_what_counts(
    config: dict[str, Any], processor: dict[str, Any] | None, count: int
) -> None:
    assert tokens(made(config, processor), 1280, 720) == count


def test_newer_processor_files_hold_the_image_processor_inside() -> None:
    inner = read_json("processor_config.json", '{"image_processor": {"max_pixels": 262144}}')
    assert image_processor(inner).whole("max_pixels") == 262_144
    plain = Section("preprocessor_config.json", {"max_pixels": 1})
    assert image_processor(plain) is plain


def test_a_text_model_is_one_and_an_unknown_image_model_is_nobody() -> None:
    assert made({"model_type": "granite"}).family == "text_only"
    assert described("x", files({"model_type": "novel", "vision_config": {}}), TABLE) is None
    match = shipped_catalog().find_described("x", files({"model_type": "novel", "vision_config": {}}))
    assert (match.how, match.checkpoint.family) == (MatchHow.UNKNOWN, "unknown")
    assert match.checkpoint.kv is not None
    assert "of type novel" in match.note


def test_a_known_name_brings_its_compute() -> None:
    known = made({"model_type": "qwen3_vl"}, name="somewhere/Qwen3-VL-8B-Instruct")
    assert known.decoder is not None
    assert made({"model_type": "qwen3_vl"}).decoder is None


def test_the_operator_wins_over_the_files() -> None:
    catalog, own = shipped_catalog(), files({"model_type": "qwen3_vl"}, {"max_pixels": 262_144})
    found = catalog.find_described("mine", own)
    assert (found.how, found.checkpoint.max_pixels) == (MatchHow.FILES, 262_144)
    told = catalog.find_described("mine", own, override=ModelOverride(max_pixels=524_288))
    assert told.checkpoint.max_pixels == 524_288
    named = catalog.find_described("mine", own, override=ModelOverride(checkpoint="Qwen2-VL-7B-Instruct"))
    assert (named.how, named.checkpoint.family) == (MatchHow.OVERRIDE, "qwen2_vl")


@pytest.mark.parametrize(
    ("config", "processor", "message"),
    [
        ({}, None, r"config.json: model_type: is missing"),
        ({"model_type": 7}, None, r"config.json: model_type: must be a string"),
        ({"model_type": "qwen3_vl", "text_config": {}}, None, r"text_config.num_hidden_layers: is missing"),
        ({"model_type": "qwen3_vl"}, {"max_pixels": "many"}, r"preprocessor_config.json: max_pixels: must be a whole"),
        ({"model_type": "qwen3_vl"}, {"max_pixels": 0}, r"max_pixels: must be a whole number of at least 1"),
        ({"model_type": "qwen3_vl"}, {"min_pixels": 9, "max_pixels": 8}, r"min_pixels: 9 is more than max_pixels"),
        ({"model_type": "qwen3_vl"}, {"size": 5}, r"preprocessor_config.json: size: must be an object"),
        ({"model_type": "internvl_chat", "max_dynamic_patch": -1}, None, r"config.json: max_dynamic_patch"),
        ({"model_type": "internvl_chat"}, {"max_dynamic_patch": 10**9}, r"preprocessor_config.json: max_tiles"),
        ({"model_type": "gemma3"}, {"do_pan_and_scan": "yes"}, r"do_pan_and_scan: must be true or false"),
    ],
)
def test_broken_files_name_their_field(config: dict[str, Any], processor: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(ConfigProblem, match=message):
        described("mine", files(config, processor), TABLE)
