from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog

QWEN3 = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint


def test_the_factor_is_the_side_of_one_token() -> None:
    assert QWEN3.factor == 32


def test_other_limits_leave_everything_else() -> None:
    capped = QWEN3.with_(max_pixels=1280 * 1024)
    assert (capped.max_pixels, capped.min_pixels) == (1_310_720, 65_536)
    assert capped.with_(max_pixels=QWEN3.max_pixels) == QWEN3
    assert QWEN3.with_(min_pixels=4096).min_pixels == 4096
    assert QWEN3.with_() == QWEN3


@pytest.mark.parametrize("limits", [{"max_pixels": 0}, {"min_pixels": -1}])
def test_a_limit_must_be_positive_and_is_named(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        QWEN3.with_(**limits)
