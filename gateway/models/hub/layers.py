"""KV from a model's config.json alone: which layers keep what, for models that no table knows.

Decided here: how the configuration classes of transformers 5.19.0 (and the remote code of DeepSeek, Step3 and
Nemotron) spell their layers. Not decided here: the bytes that follow (`kv`). A hybrid whose state is not a gated delta
net (mamba) gets the KV of its attention layers only, as in vLLM's attention pages.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from gateway.models.hub.reading import ConfigProblem, Section
from gateway.models.kv import BF16_BYTES, CrossLayers, KvShape, LinearLayers, WindowLayers

# Where the language model stands in a multimodal configuration.
_LANGUAGE: Final = ("text_config", "llm_config", "language_config", "language_model_config")
_FULL: Final = "full_attention"
_LOCAL: Final = frozenset({"sliding_attention", "chunked_attention"})
_LINEAR: Final = frozenset({"linear_attention", "mamba", "conv", "recurrent"})
# One windowed layer is followed by so many minus one others until a full one, where a model gives no list.
_PATTERN_OF: Final = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4}
_MOST_LAYERS: Final = 10_000


def language_section(config: Section) -> Section:
    """The language model's own section, however deep; the configuration itself for a text-only model."""
    if (thinker := config.section("thinker_config")) is not None:
        return language_section(thinker)
    for name in _LANGUAGE:
        if (found := config.section(name)) is not None:
            return found
    return config


def kv_shape(config: Section) -> KvShape:
    """What the layers keep per token. Raises `ConfigProblem` naming the field that is missing or cannot be."""
    text = language_section(config)
    layers = text.needed("num_hidden_layers", "n_layer", "num_layers")
    if layers > _MOST_LAYERS:
        raise ConfigProblem(f"{text.named('num_hidden_layers')}: {layers} layers are more than any model has")
    kinds = _kinds(text, layers)
    cross = set(text.wholes("cross_attention_layers") or ())
    stored = layers - (text.whole("num_kv_shared_layers", least=0) or 0)
    counted = Counter(kind for index, kind in enumerate(kinds[: max(stored, 0)]) if index not in cross)
    full, local = counted[_FULL], counted["local"]
    latent = _latent_dim(text)
    heads, dim = (1, latent) if latent is not None else _heads(text)
    full_heads, full_dim = heads, dim
    if latent is None:
        full_heads = text.whole("num_global_key_value_heads") or heads
        full_dim = text.whole("global_head_dim") or dim
    windows = (WindowLayers(local, heads, dim, _window(text)),) if local else ()
    return KvShape(
        full_layers=full,
        kv_heads=full_heads,
        head_dim=full_dim,
        window_layers=windows,
        latent_dim=latent,
        linear=_linear(text, counted["linear"]),
        cross=CrossLayers(len(cross), heads, dim) if cross else None,
    )


def kv_element_bytes(config: Section, cache_dtype: str | None = None) -> int:
    """Bytes of one KV element: the engine's ``--kv-cache-dtype`` where told, else what the checkpoint declares."""
    if cache_dtype not in {None, "auto"}:
        return 1 if str(cache_dtype).startswith(("fp8", "int8")) else BF16_BYTES
    for name in ("quantization_config", "compression_config"):
        section = config.section(name)
        if section is None:
            continue
        scheme = section.section("kv_cache_scheme")
        if scheme is not None and scheme.whole("num_bits") == 8:
            return 1
        if (section.text("kv_cache_quant_algo") or "").lower().startswith(("fp8", "int8")):
            return 1
    return BF16_BYTES


def context_tokens(config: Section) -> int | None:
    """The context length that the configuration names."""
    return language_section(config).whole("max_position_embeddings", "max_seq_len", "seq_length", "model_max_length")


def _heads(text: Section) -> tuple[int, int]:
    """KV heads and the size of one; without their own number every attention head is a KV head."""
    heads = text.whole("num_attention_heads", "n_head")
    kv_heads = text.whole("num_key_value_heads", "multi_query_group_num", "num_attention_groups", "num_kv_heads")
    dim = text.whole("head_dim", "attention_head_dim", "kv_channels")
    if kv_heads is None:
        kv_heads = heads if heads is not None else text.needed("num_attention_heads")
    if dim is None:
        dim = text.needed("hidden_size", "n_embd", "d_model") // (
            heads if heads is not None else text.needed("num_attention_heads")
        )
        if dim < 1:
            raise ConfigProblem(f"{text.named('hidden_size')}: is smaller than the number of heads")
    return kv_heads, dim


def _latent_dim(text: Section) -> int | None:
    """MLA keeps one compressed latent and one rotary key per token, whatever the number of heads."""
    if not text.flag("use_mla", default=True) or not text.has("kv_lora_rank"):
        return None
    return text.needed("kv_lora_rank") + text.needed("qk_rope_head_dim")


def _linear(text: Section, layers: int) -> LinearLayers | None:
    if not layers or not text.has("linear_num_value_heads"):
        return None
    return LinearLayers(
        layers,
        text.needed("linear_num_key_heads"),
        text.needed("linear_num_value_heads"),
        text.needed("linear_key_head_dim"),
        text.needed("linear_value_head_dim"),
        text.needed("linear_conv_kernel_dim"),
    )


def _window(text: Section) -> int:
    return text.needed("sliding_window", "attention_chunk_size", "sliding_window_size")


def _kinds(text: Section, layers: int) -> list[str]:
    """One of full, local and linear for every layer."""
    listed = text.words("layer_types")
    if listed is not None:
        _check_count(text, "layer_types", len(listed), layers)
        return [_kind(text, name) for name in listed]
    pattern = text.text("hybrid_override_pattern")
    if pattern is not None:
        _check_count(text, "hybrid_override_pattern", len(pattern), layers)
        return [_FULL if letter == "*" else "linear" for letter in pattern]
    if (interval := text.whole("full_attention_interval")) is not None:
        return [_FULL if (index + 1) % interval == 0 else "linear" for index in range(layers)]
    return _windowed(text, layers)


def _check_count(text: Section, name: str, entries: int, layers: int) -> None:
    if entries != layers:
        raise ConfigProblem(f"{text.named(name)}: has {entries} entries for {layers} layers")


def _kind(text: Section, name: str) -> str:
    if name in {_FULL, "attention"}:
        return _FULL
    if name in _LOCAL:
        return "local"
    if name in _LINEAR:
        return "linear"
    raise ConfigProblem(f"{text.named('layer_types')}: the kind of layer {name!r} is not known")


def _windowed(text: Section, layers: int) -> list[str]:
    """Full and windowed layers where the configuration has no list of them."""
    if text.has("attention_chunk_size"):  # Llama 4: a layer without rotary positions attends to everything
        rotary = text.wholes("no_rope_layers") or ()
        interval = text.whole("no_rope_layer_interval") or 4
        if len(rotary) != layers:
            rotary = tuple(int((index + 1) % interval != 0) for index in range(layers))
        return ["local" if entry else _FULL for entry in rotary]
    if not text.has("sliding_window") or not text.flag("use_sliding_window", default=True):
        return [_FULL] * layers
    every = text.whole("sliding_window_pattern") or _PATTERN_OF.get(text.text("model_type") or "")
    if every is not None:
        return [_FULL if (index + 1) % every == 0 else "local" for index in range(layers)]
    first = text.whole("max_window_layers", least=0)
    if first is not None and text.has("use_sliding_window"):  # Qwen2: the layers from this one on have a window
        return [_FULL if index < first else "local" for index in range(layers)]
    return ["local"] * layers
