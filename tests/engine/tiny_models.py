"""Make two tiny vision-language models with random weights: OUT/qwen3vl and OUT/qwen25vl. Nothing is downloaded.

usage: tiny_models.py OUT

As in the published models: architecture, special tokens, chat template, and the settings of the image processor (patch,
merge, pixel limits), hence the number of image tokens. Ours: two layers of width 64, weights from a fixed seed, and a
vocabulary trained on this Python's standard library, so that counts of text tokens mean nothing elsewhere.
Runs in the engine's environment.
"""

import json
import sys
import sysconfig
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

CONTEXT_TOKENS = 32768
NAMES = ["endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start", "box_end", "quad_start"]
NAMES += ["quad_end", "vision_start", "vision_end", "vision_pad", "image_pad", "video_pad"]
SPECIAL = [f"<|{name}|>" for name in NAMES]
# The published tokenizers cut text into these pieces before they merge bytes.
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SYSTEM = (
    "{% if loop.first and message.role != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "{% endif %}"
)
TEMPLATE = (
    "{% for message in messages %}SYSTEM<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{% if 'image' in part or 'image_url' in part or part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'video' in part or part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(folder: Path, template: str) -> tuple[dict[str, int], int]:
    """Train a byte-level BPE and save it with the template; gives the special tokens' ids and the number of tokens."""
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.NFC()
    bpe.decoder = decoders.ByteLevel()
    split = pre_tokenizers.Split(Regex(PIECES), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    texts = sorted(str(path) for path in Path(sysconfig.get_path("stdlib")).glob("*.py"))[:100]
    bpe.train(texts, trainers.BpeTrainer(vocab_size=4000, initial_alphabet=alphabet, show_progress=False))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=SPECIAL,
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    merge_json(folder / "tokenizer_config.json", tokenizer_class="Qwen2Tokenizer", errors="replace", bos_token=None)
    (folder / "chat_template.jinja").write_text(template)
    return {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}, len(tokenizer)


def merge_json(path: Path, **values: object) -> None:
    """Write values into a JSON object's file, which need not be there yet."""
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | values, indent=1))


def text_settings(ids: dict[str, int], tokens: int, rope: dict[str, object], **more: object) -> dict[str, object]:
    """The language model's configuration."""
    return {
        "vocab_size": -(-tokens // 64) * 64,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT_TOKENS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "tie_word_embeddings": False,
        "dtype": "float32",
        "rope_theta": rope["rope_theta"],
        "rope_parameters": rope,
        "rope_scaling": {name: value for name, value in rope.items() if name != "rope_theta"},
    } | more


def vision_ids(ids: dict[str, int]) -> dict[str, int]:
    """The tokens that stand around and for pixels, as a configuration names them."""
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad"}
    names |= {f"{name}_token_id": name for name in ("vision_start", "vision_end")}
    return {key: ids[f"<|{name}|>"] for key, name in names.items()}


def qwen3vl(ids: dict[str, int], tokens: int) -> tuple[torch.nn.Module, dict[str, object], dict[str, object]]:
    """Model, image processor, video processor. `size` holds areas in pixels."""
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [12, 10, 10], "mrope_interleaved": True}
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "out_hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "in_channels": 3,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [0, 1],
    }
    text = text_settings(ids, tokens, rope, head_dim=64)
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **vision_ids(ids))
    grid = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "processor_class": "Qwen3VLProcessor"}
    grid |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    image = {"size": {"shortest_edge": 65536, "longest_edge": 16777216}}
    video = {"size": {"shortest_edge": 4096, "longest_edge": 25165824}}
    return (
        Qwen3VLForConditionalGeneration(config),
        grid | image | {"image_processor_type": "Qwen2VLImageProcessorFast"},
        grid | video | {"video_processor_type": "Qwen3VLVideoProcessor"},
    )


def qwen25vl(ids: dict[str, int], tokens: int) -> tuple[torch.nn.Module, dict[str, object], dict[str, object]]:
    """Model, image processor, video processor. Limits are areas in pixels."""
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "out_hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 2,
        "in_channels": 3,
        "patch_size": 14,
        "spatial_patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 112,
        "fullatt_block_indexes": [1],
    }
    text = text_settings(ids, tokens, rope, use_sliding_window=False)
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **vision_ids(ids))
    grid = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "processor_class": "Qwen2_5_VLProcessor"}
    grid |= {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
    image = {"min_pixels": 56 * 56, "max_pixels": 12845056, "image_processor_type": "Qwen2VLImageProcessor"}
    video = {"min_pixels": 128 * 784, "max_pixels": 768 * 784, "video_processor_type": "Qwen2VLVideoProcessor"}
    return Qwen2_5_VLForConditionalGeneration(config), grid | image, grid | video


@torch.no_grad()
def scatter(model: torch.nn.Module) -> None:
    """Redraw the weights wide enough for the answer to depend on the pixels; the stock ones drown them."""
    for name, weights in model.named_parameters():
        if weights.dim() > 1:
            inputs = weights.numel() // weights.shape[0]
            is_embedding = "embed" in name and "patch" not in name
            weights.normal_(0, 1.0 if is_embedding else 1.5 / inputs**0.5)


def main(out: str) -> None:
    """Make both models."""
    for name, build in {"qwen3vl": qwen3vl, "qwen25vl": qwen25vl}.items():
        folder = Path(out, name)
        folder.mkdir(parents=True)
        ids, tokens = write_tokenizer(folder, TEMPLATE.replace("SYSTEM", SYSTEM if name == "qwen25vl" else ""))
        torch.manual_seed(0)
        model, image, video = build(ids, tokens)
        model = model.to(torch.float32)
        scatter(model)
        model.save_pretrained(folder)
        merge_json(folder / "preprocessor_config.json", **image)
        merge_json(folder / "video_preprocessor_config.json", **video)
        stops = [ids["<|im_end|>"], ids["<|endoftext|>"]]
        merge_json(folder / "generation_config.json", eos_token_id=stops, pad_token_id=stops[1], do_sample=True)


main(*sys.argv[1:])
