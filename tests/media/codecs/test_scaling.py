from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.codecs.scaling import pixels_needed, shrink_for, shrunk, stored_target
from gateway.types import Fidelity, ImageFormat, Probe, Size
from tests.media.codecs.samples import plan_for

SIDES = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("raster", "target", "exact", "fast"),
    [
        (Size(4032, 3024), Size(1312, 960), 1, 2),
        (Size(8064, 6048), Size(1312, 960), 2, 4),
        (Size(400, 400), Size(100, 100), 2, 2),
        (Size(600, 600), Size(100, 100), 2, 4),
        (Size(400, 400), Size(50, 50), 4, 4),
        (Size(399, 400), Size(50, 50), 2, 4),
        (Size(9_000, 9_000), Size(10, 10), 4, 4),
        (Size(100, 100), Size(200, 200), 1, 1),
    ],
)
def test_the_margin_is_the_class(raster: Size, target: Size, exact: int, fast: int) -> None:
    found = [shrink_for(raster, pixels_needed(target, fidelity)) for fidelity in (Fidelity.EXACT, Fidelity.FAST)]
    assert found == [exact, fast]


@given(st.builds(Size, SIDES, SIDES), st.builds(Size, SIDES, SIDES), st.sampled_from(Fidelity))
def test_what_is_left_is_never_less_than_needed(raster: Size, target: Size, fidelity: Fidelity) -> None:
    needed = pixels_needed(target, fidelity)
    shrink = shrink_for(raster, needed)
    left = shrunk(raster, shrink)
    assert shrink == 1 or (left.width >= needed.width and left.height >= needed.height)
    assert (left == raster) == (shrink == 1 or raster == Size(1, 1))


def test_the_target_of_a_picture_on_its_side_is_turned_too() -> None:
    probe = Probe(ImageFormat.JPEG, Size(400, 300))
    plan = plan_for(Size(90, 120))
    assert stored_target(probe, plan) == Size(90, 120)
    assert stored_target(replace(probe, orientation=6), plan) == Size(120, 90)
