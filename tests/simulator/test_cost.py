from __future__ import annotations

import pytest

from gateway.simulator.cost import CostModel


def _cost(speed: float) -> CostModel:
    return CostModel(
        encode_ms_per_patch=0.5, prefill_tokens_per_s=1_000, decode_tokens_per_s=100, batch_slope=0.1, speed=speed
    )


def test_times_follow_the_rates() -> None:
    cost = _cost(1)
    assert cost.encode_s(2_000) == pytest.approx(1.0)
    assert cost.prefill_s(500) == pytest.approx(0.5)
    assert cost.decode_step_s(1) == pytest.approx(0.01)
    assert cost.decode_step_s(11) == pytest.approx(0.02)


def test_speed_divides_and_zero_is_instant() -> None:
    assert _cost(4).prefill_s(1_000) == pytest.approx(0.25)
    assert _cost(0).prefill_s(1_000) == 0
    assert _cost(0).encode_s(1_000) == 0
    assert _cost(0).decode_step_s(5) == 0
