from __future__ import annotations

from typing import Any

import pytest

from gateway.simulator.geometry import Family
from gateway.simulator.settings import SettingsError, SimulatorSettings


def test_the_family_follows_from_the_model_unless_named() -> None:
    assert SimulatorSettings().geometry_family is Family.QWEN3_VL
    assert SimulatorSettings(served_model_name="Qwen/Qwen2.5-VL-7B-Instruct").grid.unit_px == 28
    assert SimulatorSettings(family=Family.QWEN2_VL).grid.unit_px == 28


def test_cap_and_floor_replace_the_familys() -> None:
    grid = SimulatorSettings(max_pixels=1280 * 32 * 32, min_pixels=1024).grid
    assert (grid.min_pixels, grid.max_pixels, grid.unit_px) == (1024, 1_310_720, 32)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kv_tokens": 100}, "must hold one request of max_model_len"),
        ({"speed": -1.0}, "speed must not be negative"),
        ({"block_size": 0}, "block_size must be positive"),
        ({"prefill_tokens_per_s": 0.0}, "must be above 0"),
        ({"min_pixels": 100, "max_pixels": 99}, "min_pixels must not exceed max_pixels"),
    ],
)
def test_what_no_engine_would_start_with_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        SimulatorSettings(**changes)
