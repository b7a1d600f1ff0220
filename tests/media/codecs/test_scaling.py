from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.codecs.scaling import measured_shrink, pixels_needed, shrink_for, shrunk, stored_target
from gateway.types import Fidelity, ImageFormat, Probe, Size
from tests.media.codecs.samples import plan_for

SIDES = st.integers(1, 20_000)


@pytest.mark.parametrize(
    ("raster", "target", "exact", "fast"),
    [
        (Size(4032, 3024), Size(1312, 960), 1, 2),
        (Size(8064, 6048), Size(1312, 960), 2, 2),
        (Size(11_648, 8_736), Size(1312, 960), 2, 4),
        (Size(400, 400), Size(100, 100), 2, 2),
        (Size(399, 400), Size(100, 100), 1, 2),
        (Size(800, 800), Size(100, 100), 2, 4),
        (Size(1_000, 1_000), Size(100, 100), 4, 4),
        (Size(300, 300), Size(100, 100), 1, 2),
        (Size(299, 300), Size(100, 100), 1, 1),
        (Size(9_000, 9_000), Size(10, 10), 4, 4),
        (Size(100, 100), Size(200, 200), 1, 1),
    ],
)
def test_the_margin_is_the_class(raster: Size, target: Size, exact: int, fast: int) -> None:
    needed = {fidelity: pixels_needed(raster, target, fidelity) for fidelity in Fidelity}
    assert needed == {Fidelity.EXACT: shrunk(raster, exact), Fidelity.FAST: shrunk(raster, fast)}
    assert [shrink_for(raster, needed[fidelity]) for fidelity in (Fidelity.EXACT, Fidelity.FAST)] == [exact, fast]


@given(st.builds(Size, SIDES, SIDES), st.builds(Size, SIDES, SIDES), st.sampled_from(Fidelity))
def test_a_decoder_leaves_what_is_needed_and_that_is_more_than_the_target(
    raster: Size, target: Size, fidelity: Fidelity
) -> None:
    needed = pixels_needed(raster, target, fidelity)
    left = shrunk(raster, shrink_for(raster, needed))
    assert left.width >= needed.width
    assert left.height >= needed.height
    assert needed == raster or (2 * needed.width >= 3 * target.width and 2 * needed.height >= 3 * target.height)


def test_the_target_of_a_picture_on_its_side_is_turned_too() -> None:
    probe = Probe(ImageFormat.JPEG, Size(400, 300))
    plan = plan_for(Size(90, 120))
    assert stored_target(probe, plan) == Size(90, 120)
    assert stored_target(replace(probe, orientation=6), plan) == Size(120, 90)


@pytest.mark.parametrize(
    ("side", "shrink"), [(10, 1), (1_999, 1), (2_000, 2), (3_999, 2), (4_000, 4), (8_000, 8), (90_000, 8)]
)
def test_a_million_pixels_are_measured_where_there_are_so_many(side: int, shrink: int) -> None:
    assert measured_shrink(Size(side, side)) == shrink
