"""What an image costs beside its tokens; numbers of the catalogue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.image_price import image_price
from gateway.models.kv import bytes_per_token
from gateway.models.pace import Pace
from gateway.types import Size


def test_kv_is_the_prompt_positions_of_the_image() -> None:
    checkpoint = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
    tokens = family_of(checkpoint.family).image_tokens(Size(1600, 1200), checkpoint)
    price = image_price(tokens, checkpoint, Pace())
    assert checkpoint.kv is not None
    assert price.kv_bytes == tokens.prompt_tokens * bytes_per_token(checkpoint.kv)
    assert price.prefill_ms == pytest.approx(14.9, abs=0.05)
    assert price.encode_ms == pytest.approx(71.5, abs=0.05)
    assert price.kv_bytes is not None
    halved = image_price(tokens, checkpoint, Pace(), element_bytes=1)
    assert halved.kv_bytes == price.kv_bytes // 2


def test_embeddings_beside_the_prompt_cost_no_prefill_but_kv() -> None:
    checkpoint = shipped_catalog().find("meta-llama/Llama-3.2-11B-Vision-Instruct").checkpoint
    tokens = family_of(checkpoint.family).image_tokens(Size(1600, 1200), checkpoint)
    price = image_price(tokens, checkpoint, Pace())
    assert price.prefill_ms == pytest.approx(0.0, abs=0.05)
    assert price.kv_bytes == pytest.approx(210.0e6, rel=0.01)


def test_what_is_not_known_is_not_told() -> None:
    checkpoint = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
    tokens = family_of(checkpoint.family).image_tokens(Size(64, 64), checkpoint)
    bare = replace(checkpoint, kv=None, encoder=None, decoder=None)
    price = image_price(tokens, bare, Pace())
    assert (price.kv_bytes, price.prefill_ms, price.encode_ms) == (None, None, None)
