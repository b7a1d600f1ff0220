"""Milliseconds: the published magnitudes come out, and what a backend shows is learnt, queues slowly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.cost import DecoderShape, EncoderShape, encoder_flops, prefill_flops
from gateway.models.pace import SEED_PREFILL_FLOPS_PER_S, Pace

LLAMA_70B = DecoderShape(68_500_000_000, 80, 64, 128)
SIGLIP = EncoderShape(27, 1152, 4304, gated=False, out_hidden=4096, merge=1, full_layers=27)
INTERN_VIT_6B = EncoderShape(45, 3200, 12_800, gated=False, out_hidden=4096, merge=2, full_layers=45)


@pytest.mark.parametrize(("tokens", "milliseconds"), [(100, 2), (2_100, 40), (8_500, 160)])
def test_a_70b_model_on_four_gpus(tokens: int, milliseconds: float) -> None:
    four = Pace(prefill_flops_per_s=4 * SEED_PREFILL_FLOPS_PER_S)
    assert four.prefill_ms(prefill_flops(LLAMA_70B, tokens)) == pytest.approx(milliseconds, rel=0.15)


def test_vision_towers() -> None:
    assert 2.5 < Pace().encode_ms(encoder_flops(SIGLIP, 729)) < 10
    assert 25 < Pace().encode_ms(encoder_flops(INTERN_VIT_6B, 1024)) < 100


def test_a_slower_backend_is_learnt_and_a_queue_is_not_taken_for_one() -> None:
    pace = Pace()
    for _ in range(50):
        pace = pace.update(10**15, 0, 10**15 / 2e14)
    assert pace.prefill_flops_per_s == pytest.approx(2e14, rel=0.5)
    assert pace.encode_flops_per_s == Pace().encode_flops_per_s
    queued = pace.update(10**15, 0, 60.0)
    assert queued.prefill_flops_per_s > 0.9 * pace.prefill_flops_per_s


def test_images_teach_the_encoders_rate() -> None:
    pace = replace(Pace(), samples=100)
    for _ in range(30):
        pace = pace.update(0, 10**12, 10**12 / 1e15)
    assert pace.encode_flops_per_s == pytest.approx(1e15, rel=0.1)


@given(st.integers(0, 10**18), st.integers(0, 10**16), st.floats(allow_nan=True, allow_infinity=True))
def test_nothing_breaks_a_rate(prefill: int, encode: int, seconds: float) -> None:
    pace = Pace().update(prefill, encode, seconds)
    assert 0 < pace.prefill_flops_per_s < 1e18
    assert 0 < pace.encode_flops_per_s < 1e17
