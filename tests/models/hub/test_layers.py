"""KV shapes from config.json alone, against the shapes that the oracle's table has for the same checkpoints."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.models import kv
from gateway.models.hub.layers import context_tokens, kv_element_bytes, kv_shape, language_section
from gateway.models.hub.reading import ConfigProblem, Section

Fields = dict[str, Any]
TABLE = Path(__file__).parents[2] / "golden" / "oracle" / "kv_bytes.csv"


def config(**fields: Any) -> Section:
    return Section("config.json", fields)


def dense(layers: int, heads: int, kv_heads: int | None, dim: int | None, hidden: int = 4096, **more: Any) -> Fields:
    fields: Fields = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": hidden}
    return fields | {"num_key_value_heads": kv_heads, "head_dim": dim} | more


def every(layers: int, interval: int, other: str) -> list[str]:
    return ["full_attention" if (index + 1) % interval == 0 else other for index in range(layers)]


GATED = {
    "linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip
# The fields that the published config.json files have, cut down to those that say something about KV.
CONFIGS: dict[str, Fields] = {
    "meta-llama/Llama-3.1-8B-Instruct": dense(32, 32, 8, None),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": {
        "text_config": dense(40, 32, 8, None, cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38])
    },
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": {
        "text_config": dense(48, 40, 8, 128, 5120, attention_chunk_size=8192, no_rope_layers=[])
    },
    "Qwen/Qwen2-VL-2B-Instruct": dense(
        28, 12, 2, None, 1536, sliding_window=32768, use_sliding_window=False, max_window_layers=28
    ),
    "Qwen/Qwen3-VL-4B-Instruct": {"text_config": dense(36, 32, 8, 128, 2560)},
    "Qwen/Qwen3.5-0.8B": {
        "text_config": dense(
            24, 8, 2, 256, 1024, layer_types=every(24, 4, "linear_attention"), linear_num_value_heads=16, **GATED
        )
    },
    "Qwen/Qwen3.5-397B-A17B": {
        "text_config": dense(60, 32, 2, 256, 4096, full_attention_interval=4, linear_num_value_heads=64, **GATED)
    },
    "google/gemma-3-4b-it": {
        "text_config": dense(34, 8, 4, 256, 2560, model_type="gemma3_text", sliding_window=1024)
    },
    "google/gemma-3-12b-it": {
        "text_config": dense(48, 16, 8, 256, 3840, sliding_window=1024, sliding_window_pattern=6)
    },
    "google/gemma-3n-E4B-it": {
        "text_config": dense(
            35, 8, 2, 256, 2048, sliding_window=512, num_kv_shared_layers=15,
            layer_types=every(35, 5, "sliding_attention"),
        )
    },
    "google/gemma-4-E4B-it": {
        "text_config": dense(
            42, 8, 2, 256, 2560, sliding_window=512, num_kv_shared_layers=18, global_head_dim=512,
            layer_types=every(42, 6, "sliding_attention"),
        )
    },
    "google/gemma-4-31B-it": {
        "text_config": dense(
            60, 32, 16, 256, 5376, sliding_window=1024, global_head_dim=512, num_global_key_value_heads=4,
            layer_types=every(60, 6, "sliding_attention"), num_kv_shared_layers=0,
        )
    },
    "google/paligemma2-3b-pt-448": {
        "text_config": dense(26, 8, 4, 256, 2304, model_type="gemma2", sliding_window=4096)
    },
    "llava-hf/llava-1.5-13b-hf": {"text_config": dense(40, 40, None, None, 5120)},
    "OpenGVLab/InternVL3-8B": {"llm_config": dense(28, 28, 4, None, 3584)},
    "deepseek-ai/deepseek-vl2-tiny": {
        "language_config": dense(12, 10, 10, None, 1280, use_mla=False, kv_lora_rank=None, qk_rope_head_dim=0)
    },
    "deepseek-ai/deepseek-vl2-small": {
        "language_config": dense(27, 16, 16, None, 2048, kv_lora_rank=512, qk_rope_head_dim=64)
    },
    "deepseek-ai/DeepSeek-V3.1": dense(61, 128, 128, None, 7168, kv_lora_rank=512, qk_rope_head_dim=64),
    "microsoft/Phi-3.5-vision-instruct": dense(32, 32, 32, None, 3072, sliding_window=None),
    "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16": {
        "llm_config": dense(62, 40, 8, 128, 5120, hybrid_override_pattern="M-M*" + "M-" * 24 + "*-*-*-*-M*")
    },
}  # fmt: skip


def shape_in_table(model: str) -> kv.KvShape:
    with TABLE.open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row["model"] == model)
    told = json.loads(row["config_json"])
    return kv.KvShape(
        told["full_layers"],
        told["kv_heads"],
        told["head_dim"],
        tuple(kv.WindowLayers(*window) for window in told["window_layers"]),
        told["mla_dim"],
        None if told["gdn"] is None else kv.LinearLayers(*told["gdn"]),
        None if told["cross_layers"] is None else kv.CrossLayers(*told["cross_layers"]),
    )


@pytest.mark.parametrize("model", CONFIGS)
def test_a_configuration_alone_tells_the_shape(model: str) -> None:
    assert kv_shape(config(**CONFIGS[model])) == shape_in_table(model)


def test_an_omni_model_speaks_through_its_thinker() -> None:
    section = config(thinker_config={"text_config": {"num_hidden_layers": 3}})
    assert language_section(section).place == "config.json: thinker_config.text_config"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "config.json: num_hidden_layers: is missing"),
        ({"text_config": []}, r"config.json: text_config: must be an object, not \[\]"),
        ({"text_config": {"num_hidden_layers": "32"}}, "text_config.num_hidden_layers: must be a whole number"),
        ({"num_hidden_layers": 10**9}, "more than any model has"),
        ({"num_hidden_layers": 2}, "num_attention_heads: is missing"),
        ({"num_hidden_layers": 2, "num_attention_heads": 0}, "num_attention_heads: must be a whole number"),
        ({"num_hidden_layers": 2, "num_attention_heads": 2}, "hidden_size: is missing"),
        ({"num_hidden_layers": 2, "num_attention_heads": 9, "hidden_size": 8}, "smaller than the number of heads"),
        (dense(2, 2, 2, 2, layer_types=["full_attention"]), "has 1 entries for 2 layers"),
        (dense(1, 2, 2, 2, layer_types=["telepathy"]), "'telepathy' is not known"),
        (dense(1, 2, 2, 2, layer_types=["sliding_attention"]), "sliding_window: is missing"),
        (dense(2, 2, 2, 2, hybrid_override_pattern="M*-"), "has 3 entries for 2 layers"),
        (dense(1, 2, 2, 2, kv_lora_rank=512), "qk_rope_head_dim: is missing"),
        (dense(2, 2, 2, 2, cross_attention_layers="all"), "cross_attention_layers: must be a list of whole numbers"),
    ],
)
def test_what_cannot_be_is_named(fields: Fields, message: str) -> None:
    with pytest.raises(ConfigProblem, match=message):
        kv_shape(config(**fields))


def test_windows_where_no_list_is_given() -> None:
    mistral = kv_shape(config(**dense(32, 32, 8, 128, sliding_window=4096)))
    assert (mistral.full_layers, mistral.window_layers[0].layers) == (0, 32)
    qwen = kv_shape(config(**dense(28, 28, 4, 128, sliding_window=9, use_sliding_window=True, max_window_layers=21)))
    assert (qwen.full_layers, qwen.window_layers[0].layers) == (21, 7)


def test_fp8_is_what_engine_or_checkpoint_says() -> None:
    plain = config()
    assert kv_element_bytes(plain) == kv_element_bytes(plain, "auto") == kv_element_bytes(plain, "bfloat16") == 2
    assert kv_element_bytes(plain, "fp8_e4m3") == 1
    assert kv_element_bytes(config(quantization_config={"kv_cache_scheme": {"num_bits": 8}})) == 1
    assert kv_element_bytes(config(quantization_config={"kv_cache_quant_algo": "FP8"})) == 1
    assert kv_element_bytes(config(quantization_config={"kv_cache_quant_algo": "FP8"}), "bfloat16") == 2
    assert kv_element_bytes(config(quantization_config={"bits": 4})) == 2


def test_the_context_is_the_language_models() -> None:
    assert context_tokens(config(text_config={"max_position_embeddings": 262_144})) == 262_144
    assert context_tokens(config()) is None
