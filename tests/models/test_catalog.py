from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import MatchHow, ModelOverride, shipped_catalog
from gateway.models.families import family_of
from gateway.models.kv import KvShape

CATALOG = shipped_catalog()
QWEN3_8B = "Qwen/Qwen3-VL-8B-Instruct"


def test_every_checkpoint_is_found_by_its_own_name() -> None:
    for checkpoint in CATALOG.checkpoints:
        match = CATALOG.find(checkpoint.name)
        assert (match.checkpoint, match.how, match.note) == (checkpoint, MatchHow.EXACT, "")
        assert CATALOG.find(checkpoint.name.lower()).checkpoint == checkpoint
        assert family_of(checkpoint.family).name == checkpoint.family


@pytest.mark.parametrize(
    ("served", "name"),
    [
        ("qwen3-vl-8b-instruct-awq", QWEN3_8B),
        ("Qwen3-VL-8B-Thinking", QWEN3_8B),
        ("QuantTrio/Qwen3-VL-30B-A3B-Instruct-AWQ", "Qwen/Qwen3-VL-30B-A3B-Instruct"),
        ("qwen2_5_vl_7b", "Qwen/Qwen2.5-VL-7B-Instruct"),
        ("Qwen/Qwen2-VL-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2-VL-72B-Instruct"),
        ("Qwen3.5-27B-FP8", "Qwen/Qwen3.5-27B"),
        ("Qwen3.5-2B-Base", "Qwen/Qwen3.5-2B"),
        ("mlx-community/Qwen3.6-35B-A3B-4bit", "Qwen/Qwen3.6-35B-A3B"),
        ("/models/Qwen2.5-VL-3B-Instruct-lora/v2", "Qwen/Qwen2.5-VL-3B-Instruct"),
        ("C:\\models\\Qwen3-VL-4B-Instruct-FP8\\", "Qwen/Qwen3-VL-4B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Qwen3-Omni-30B-A3B-Thinking", "Qwen/Qwen3-Omni-30B-A3B-Instruct"),
        ("zai-org/GLM-4.5V-FP8", "zai-org/GLM-4.5V"),
        ("moonshotai/Kimi-K2.5-NVFP4", "moonshotai/Kimi-K2.5"),
        ("RedHatAI/Mistral-Small-3.2-24B-Instruct-2506-FP8", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"),
        ("RedHatAI/gemma-3-27b-it-quantized.w4a16", "google/gemma-3-27b-it"),
        ("NVIDIA-Nemotron-3-Nano-Omni-30B-A3B-BF16", "nvidia/Nemotron-3-Nano-Omni"),
    ],
)
def test_other_spellings_are_taken_for_a_checkpoint_and_say_so(served: str, name: str) -> None:
    match = CATALOG.find(served)
    assert (match.checkpoint.name, match.how) == (name, MatchHow.PATTERN)
    assert name in match.note
    assert match.known


def test_a_hub_caches_folder_gives_the_published_name() -> None:
    match = CATALOG.find("vlm", root="/cache/hub/models--Qwen--Qwen3-VL-8B-Instruct/snapshots/0123abcd")
    assert (match.checkpoint.name, match.how) == (QWEN3_8B, MatchHow.EXACT)


@pytest.mark.parametrize(
    ("served", "family", "factor"),
    [
        ("tiny-qwen3vl", "qwen3_vl", 32),
        ("tiny-qwen25vl", "qwen2_vl", 28),
        ("my-Qwen2-VL-finetune", "qwen2_vl", 28),
        ("Qwen3.5-4bit", "qwen3_vl", 32),
        ("gemma3:27b", "gemma3", 56),
        ("paligemma2-10b-mix-448", "paligemma", 14),
        ("ERNIE-4.5-VL-28B-A3B-Thinking", "ernie4_5_vl", 28),
    ],
)
def test_a_series_alone_gives_counts_but_no_kv(served: str, family: str, factor: int) -> None:
    match = CATALOG.find(served)
    assert (match.how, match.checkpoint.family, match.checkpoint.factor) == (MatchHow.PATTERN, family, factor)
    assert match.checkpoint.kv is None
    assert match.checkpoint.name == served
    assert "size is not known" in match.note


@pytest.mark.parametrize(
    "served",
    ["gpt-4o", "Qwen/Qwen3-8B", "Qwen3.5-Omni-9B", "google/gemma-3-1b-it", "google/medgemma-4b-it", "", "/", "vl-test",
     "allenai/Molmo2-8B", "llama-3.1-8b-llava", "unknown"],
)  # fmt: skip
def test_an_unknown_model_says_so_and_is_never_taken_for_blind(served: str) -> None:
    match = CATALOG.find(served)
    assert (match.how, match.checkpoint.family, match.known) == (MatchHow.UNKNOWN, "unknown", False)
    assert match.checkpoint.name == served
    assert "upper estimate" in match.note


def test_the_root_knows_better_than_an_alias() -> None:
    alias = CATALOG.find("gpt-4o", root=QWEN3_8B)
    assert (alias.checkpoint.name, alias.how) == (QWEN3_8B, MatchHow.EXACT)
    wrong = CATALOG.find("qwen2-vl-7b", root=QWEN3_8B)
    assert wrong.checkpoint.name == QWEN3_8B
    assert "qwen2-vl-7b" in wrong.note
    sized = CATALOG.find(QWEN3_8B, root="/weights/qwen3vl")
    assert (sized.checkpoint.name, sized.how) == (QWEN3_8B, MatchHow.EXACT)


def test_the_operators_word_wins() -> None:
    kv = KvShape(2, 2, 32)
    override = ModelOverride(checkpoint=QWEN3_8B, max_pixels=1_310_720, kv=kv, context_tokens=8192)
    match = CATALOG.find("whatever", override=override)
    assert match.how is MatchHow.OVERRIDE
    assert (match.checkpoint.max_pixels, match.checkpoint.kv, match.checkpoint.context_tokens) == (1_310_720, kv, 8192)
    grid = ModelOverride(family="qwen2_vl", patch=14, merge=2, min_pixels=784, max_pixels=10**6, max_ratio=200)
    match = CATALOG.find("vl-test", override=grid)
    assert (match.how, match.checkpoint.name, match.checkpoint.factor, match.note) == ("override", "vl-test", 28, "")


def test_a_number_alone_does_not_make_a_model_known() -> None:
    match = CATALOG.find("vl-test", override=ModelOverride(max_pixels=10**6))
    assert (match.how, match.checkpoint.max_pixels) == (MatchHow.UNKNOWN, 10**6)
    match = CATALOG.find("tiny-qwen3vl", override=ModelOverride(bytes_per_text_token=3.0))
    assert (match.how, match.checkpoint.bytes_per_text_token) == (MatchHow.PATTERN, 3.0)


@pytest.mark.parametrize(
    ("override", "names"),
    [
        (ModelOverride(checkpoint="Qwen/Qwen9"), "checkpoint: .*Qwen9"),
        (ModelOverride(family="qwen9"), "family: .*qwen9.*qwen3_vl"),
        (ModelOverride(max_pixels=0), "max_pixels"),
        (ModelOverride(patch=-14), "patch"),
        (ModelOverride(max_ratio=float("nan")), "max_ratio"),
        (ModelOverride(max_tiles=4), "max_tiles"),
        (ModelOverride(bytes_per_text_token=float("inf")), "bytes_per_text_token"),
    ],
)
def test_an_override_that_cannot_be_names_its_field(override: ModelOverride, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        CATALOG.find(QWEN3_8B, override=override)


@given(st.text(max_size=60), st.one_of(st.none(), st.text(max_size=60)))
def test_any_name_gets_a_checkpoint_of_a_known_family(served: str, root: str | None) -> None:
    match = CATALOG.find(served, root=root)
    assert family_of(match.checkpoint.family).name == match.checkpoint.family
    assert match.known is (match.checkpoint.family != "unknown")
