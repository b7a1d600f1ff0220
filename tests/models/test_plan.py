"""From facts to a plan: what is passed byte for byte, and what each reason makes of an image."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.plan import ENGINE_FORMATS, PlanRules, plan_image
from gateway.types import (
    Change,
    ColourModel,
    ContentDigest,
    ImageFormat,
    ImagePlan,
    OutputFormat,
    PlacementDigest,
    Probe,
    Size,
    SourceFacts,
)

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint.with_(max_pixels=1280 * 32 * 32)
FAMILY = family_of(CHECKPOINT.family)
RULES = PlanRules(None, (255, 255, 255), OutputFormat.AUTO, 95, preserve=False, version="v1")
sides = st.integers(min_value=1, max_value=6000)


def facts(size: Size, *, canonical: bool = True, remote: bool = False, probe: Probe | None = None) -> SourceFacts:
    found = probe or Probe(ImageFormat.JPEG, size)
    return SourceFacts(1000, PlacementDigest(b"p" * 16), ContentDigest(b"c" * 32), found, canonical, remote)


def plan(size: Size, rules: PlanRules = RULES, *, canonical: bool = True, remote: bool = False) -> ImagePlan:
    return plan_image(facts(size, canonical=canonical, remote=remote), FAMILY, CHECKPOINT, rules)


def probed(**changes: object) -> ImagePlan:
    probe = replace(Probe(ImageFormat.PNG, Size(640, 480)), **changes)  # type: ignore[arg-type]
    return plan_image(facts(probe.raster, probe=probe), FAMILY, CHECKPOINT, RULES)


def test_a_conforming_image_is_untouched_whatever_its_multiple() -> None:
    found = plan(Size(333, 217))
    assert found.untouched
    assert (found.target, found.after) == (found.original, found.before)
    assert found.version == "v1"


@pytest.mark.parametrize(
    ("changes", "change"),
    [
        ({"orientation": 6}, Change.ORIENTATION),
        ({"frames": 2}, Change.FRAMES),
        ({"bits_per_sample": 16}, Change.BIT_DEPTH),
        ({"has_alpha": True}, Change.ALPHA),
        ({"colour": ColourModel.CMYK}, Change.COLOUR),
        ({"format": ImageFormat.BMP}, Change.FORMAT),
        ({"format": ImageFormat.TIFF}, Change.FORMAT),
    ],
)
def test_each_departure_from_the_norm_is_named(changes: dict[str, object], change: Change) -> None:
    found = probed(**changes)
    assert found.changes == (change,)
    assert not found.keeps_file


@pytest.mark.parametrize("kind", sorted(ENGINE_FORMATS))
def test_formats_that_engines_take_are_kept(kind: ImageFormat) -> None:
    assert probed(format=kind).untouched
    assert probed(format=kind, colour=ColourModel.PALETTE).untouched
    assert probed(format=kind, colour=ColourModel.GREY).untouched


def test_orientation_is_applied_before_sizes_are_compared() -> None:
    found = probed(orientation=6, raster=Size(640, 480))
    assert (found.original, found.target) == (Size(480, 640), Size(480, 640))


def test_a_tag_alone_is_no_reason_where_it_is_to_be_kept() -> None:
    keeping = replace(RULES, keeps_tag=True)
    turned = facts(Size(640, 480), probe=Probe(ImageFormat.JPEG, Size(640, 480), orientation=6))
    assert plan_image(turned, FAMILY, CHECKPOINT, keeping).untouched
    large = facts(Size(5000, 4000), probe=Probe(ImageFormat.JPEG, Size(5000, 4000), orientation=6))
    found = plan_image(large, FAMILY, CHECKPOINT, keeping)
    assert (found.changes, found.target.width < found.target.height) == ((Change.RESIZED,), True)


def test_the_longer_side_is_capped_and_no_bucket_is_longer() -> None:
    sided = replace(RULES, cap_side=512, buckets=(Size(1024, 128), Size(448, 320)))
    assert plan(Size(2000, 1000), replace(sided, buckets=())).target == Size(512, 256)
    assert plan(Size(1000, 740), sided).target == Size(448, 320)


def test_spelling_and_place_keep_the_file() -> None:
    assert plan(Size(64, 64), canonical=False).changes == (Change.DATA_URL,)
    assert plan(Size(64, 64), remote=True, canonical=False).changes == (Change.REMOTE,)
    assert plan(Size(64, 64), canonical=False).keeps_file


def test_spelling_is_not_named_where_the_bytes_are_new_anyway() -> None:
    assert plan(Size(5000, 5000), canonical=False, remote=True).changes == (Change.RESIZED,)


def test_over_the_cap_it_shrinks_to_what_the_engine_would_have_made() -> None:
    found = plan(Size(4032, 3024))
    assert found.changes == (Change.RESIZED,)
    assert found.target == FAMILY.engine_size(found.original, CHECKPOINT)
    assert found.after.tokens == found.before.tokens


def test_a_policys_cap_saves_tokens() -> None:
    found = plan(Size(4032, 3024), replace(RULES, cap_pixels=200_000))
    assert found.target.pixels <= 200_000
    assert found.after.tokens < found.before.tokens


def test_a_side_below_the_grid_is_enlarged() -> None:
    found = plan(Size(300, 3))
    assert found.changes == (Change.ENLARGED,)
    assert min(found.target.width, found.target.height) >= 28


def test_preserve_never_resizes_what_can_be_served() -> None:
    preserve = replace(RULES, preserve=True, cap_pixels=100_000)
    assert plan(Size(4032, 3024), preserve).untouched
    assert plan(Size(300, 3), preserve).changes == (Change.ENLARGED,)


def test_a_file_that_ends_early_is_refused() -> None:
    with pytest.raises(Undecodable):
        probed(complete=False)


def test_a_shape_the_model_refuses_is_refused() -> None:
    with pytest.raises(AspectRatioExceeded):
        plan(Size(30_000, 10))


@given(width=sides, height=sides, cap=st.none() | st.integers(min_value=100_000, max_value=4_000_000))
def test_planning_the_result_changes_nothing(width: int, height: int, cap: int | None) -> None:
    rules = replace(RULES, cap_pixels=cap)
    try:
        first = plan(Size(width, height), rules)
    except AspectRatioExceeded:
        return
    again = plan(first.target, rules)
    assert again.target == first.target
    assert again.untouched
    assert again.before.tokens == first.after.tokens
    if Change.RESIZED in first.changes and cap is not None:
        assert first.target.pixels <= max(cap, 56 * 56)
