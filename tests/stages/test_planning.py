"""What journey and explanation share: which model, which cap, which plans, what it all costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.effective import (
    Adaptive,
    EffectivePolicy,
    Excess,
    Geometry,
    History,
    Mode,
    OnExcess,
    Selection,
    Several,
)
from gateway.stages.planning import (
    Kept,
    cap_of,
    cost_of,
    estimate_request,
    media_scope,
    plan_images,
    plan_kept,
    reason_of,
)
from gateway.stages.serving import served_model
from gateway.types import Change, Detail, ImageForm, ImagePlan, Size, SourceFacts
from tests.journey.driver import drive
from tests.journey.fakes import facts, view
from tests.journey.scenes import Setting
from tests.policy.examples import call, part, policy

BOOK = ModelBook(shipped_catalog())
VIEWS = (view("a"), view("b", max_pixels=None))


def test_the_smaller_of_both_caps_is_in_force() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    assert cap_of(policy(), served) == served.checkpoint.max_pixels
    assert cap_of(policy(max_pixels=1000), served) == 1000
    assert cap_of(policy(max_pixels=10**9), served) == served.checkpoint.max_pixels


def test_plans_follow_the_policy_and_name_the_part_at_fault() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    large = facts(Size(2048, 2048))
    (plan,) = plan_images(policy(max_pixels=262_144), served, call(part()), [large], "v")
    assert (plan.target, plan.changes) == (Size(512, 512), (Change.RESIZED,))
    for kept in (policy(max_pixels=1, geometry=Geometry.PRESERVE), policy(max_pixels=1, mode=Mode.SHADOW)):
        assert plan_images(kept, served, call(part()), [large], "v")[0].untouched
    with pytest.raises(AspectRatioExceeded) as caught:
        plan_images(policy(), served, call(part(0), part(1)), [large, facts(Size(10_000, 10))], "v")
    assert caught.value.part == part(1).name


@pytest.mark.parametrize(("images", "trail"), [(8, ()), (9, ("aside",))])
def test_many_images_are_planned_aside(images: int, trail: tuple[str, ...]) -> None:
    served, ports = served_model(BOOK, policy(), VIEWS), Setting(b"{}").scene().ports
    asked, given = call(*[part(index) for index in range(images)]), [facts(Size(2048, 2048))] * images
    planned = []

    async def plan() -> None:
        planned.append((await plan_kept(policy(max_pixels=262_144), served, asked, given, ports, {})).plans)

    assert drive(plan()).trail == trail
    assert planned == [plan_images(policy(max_pixels=262_144), served, asked, given, "test-1")]


def test_bare_base64_is_passed_where_its_true_type_is_declared() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    jpeg, bare = facts(Size(448, 448)), replace(facts(Size(448, 448), canonical=False), bare_base64=True)
    true_type, other_type = jpeg.probe.format.media_type, "image/x-other"
    for written, fact, changes in (
        (replace(part(), form=ImageForm.BASE64, media_type=true_type), bare, ()),
        (replace(part(), form=ImageForm.BASE64, media_type=other_type), bare, (Change.DATA_URL,)),
        (replace(part(), form=ImageForm.BASE64), bare, (Change.DATA_URL,)),
        (replace(part(), form=ImageForm.BASE64, media_type=true_type), jpeg, (Change.DATA_URL,)),
        (replace(part(), form=ImageForm.BASE64_SOURCE), jpeg, ()),
        (part(), bare, (Change.DATA_URL,)),
    ):
        assert plan_images(policy(), served, call(written), [fact], "v")[0].changes == changes


def test_an_estimate_adds_up_and_the_output_fits_the_context() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    asked = call(part(), output_limit_tokens=10**6, choices=2)
    plans = plan_images(policy(), served, asked, [facts(Size(448, 448))], "v")
    estimate = estimate_request(BOOK, served, policy(), asked, plans)
    assert (estimate.image_tokens, estimate.image_overhead_tokens, estimate.exact) == (196, 2, False)
    left = 32_768 - estimate.prompt_lower_bound
    assert estimate.output_tokens == 2 * left
    cost = cost_of(estimate, plans)
    assert (cost.prompt_tokens, cost.encode_patches) == (estimate.prompt_tokens, 784)


def test_hosts_are_none_where_nothing_is_fetched() -> None:
    world = Setting(b"").world()
    scope = media_scope(policy(hosts=None), world)
    assert (scope.deadline_s, scope.patience_s, scope.weight) == (10.0, policy().queue_timeout_s, policy().weight)
    assert scope.hosts == (None if world.may_fetch else ())


def test_a_token_budget_is_shared_out_before_anything_is_refused() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    both = call(part(0), part(1))
    seen = [facts(Size(2048, 2048)), facts(Size(448, 448))]
    plans = plan_images(policy(max_image_tokens=1000), served, both, seen, "v")
    assert [plan.after.tokens for plan in plans] == [784, 196]
    assert plans[1].untouched
    for kept in (Excess.REJECT, Excess.SHRINK):
        limit = 1000 if kept is Excess.REJECT else 1
        whole = plan_images(
            policy(max_image_tokens=limit, on_excess=OnExcess(max_image_tokens=kept)), served, both, seen, "v"
        )
        assert [plan.after.tokens for plan in whole] == [4096, 196]
    assert plan_images(policy(max_image_tokens=1000, mode=Mode.SHADOW), served, both, seen, "v")[0].untouched


def test_buckets_are_the_sizes_that_images_get() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    bucketed = policy(max_pixels=1_000_000, buckets=(Size(448, 448), Size(896, 896)))
    (plan,) = plan_images(bucketed, served, call(part()), [facts(Size(2048, 2048))], "v")
    assert (plan.target, plan.after.tokens) == (Size(896, 896), 784)


def kept_of(given: EffectivePolicy, images: int, sizes: Sequence[Size]) -> Kept:
    served = served_model(BOOK, policy(), VIEWS)
    ports = Setting(b"{}").scene().ports
    content: list[Any] = [{"type": "image_url", "image_url": {"url": "data:,"}} for _ in range(images)]
    tree: dict[str, Any] = {"messages": [{"role": "user", "content": content}]}
    asked = call(*[part(index) for index in range(images)])
    found: list[Kept] = []

    async def plan() -> None:
        known = [facts(size, number=index) for index, size in enumerate(sizes)]
        found.append(await plan_kept(given, served, asked, known, ports, tree))

    drive(plan())
    return found[0]


def test_batches_go_by_the_tokens_of_each_image_whatever_is_shared_out_afterwards() -> None:
    each = kept_of(policy(), 1, [Size(512, 512)]).plans[0].after.tokens
    history = History(tokens=6 * each, batch=3, keep_newest=2)
    for images, omitted in ((6, 0), (7, 3), (9, 3), (10, 6)):
        sizes = [Size(512, 512)] * images
        kept = kept_of(policy(history=history), images, sizes)
        assert [image.name for image in kept.call.omitted] == [part(index).name for index in range(omitted)]
        assert len(kept.call.images) == len(kept.facts) == len(kept.plans) == images - omitted
        assert sum(plan.after.tokens for plan in kept.plans) <= 6 * each
        shared = kept_of(policy(history=history, max_image_tokens=3 * each), images, sizes)
        assert len(shared.call.omitted) == omitted
        assert sum(plan.after.tokens for plan in shared.plans) <= 3 * each
    assert not kept_of(policy(history=history, mode=Mode.SHADOW), 10, [Size(512, 512)] * 10).call.omitted


@given(st.lists(st.integers(1, 40), min_size=1, max_size=24), st.integers(100, 9_000), st.integers(1, 5))
def test_no_more_tokens_than_the_trigger_are_left_and_no_frontier_goes_back(
    sides: list[int], tokens: int, batch: int
) -> None:
    history = policy(history=History(tokens=tokens, batch=batch, keep_newest=2))
    frontier = 0
    for images in range(1, len(sides) + 1, 3):
        kept = kept_of(history, images, [Size(32 * side, 32 * side) for side in sides[:images]])
        assert sum(plan.after.tokens for plan in kept.plans) <= tokens or len(kept.plans) <= 2
        assert len(kept.call.omitted) >= frontier
        frontier = len(kept.call.omitted)


SMOOTH = Detail(4_194_304, (1, 4, 16, 400, 60_000), 0)


def test_what_shows_little_goes_below_its_cap_where_the_policy_says_so() -> None:
    served = served_model(BOOK, policy(), VIEWS)
    large = replace(facts(Size(2048, 2048)), detail=SMOOTH)

    def planned(rules: EffectivePolicy, fact: SourceFacts = large) -> ImagePlan:
        return plan_images(rules, served, call(part()), [fact], "v")[0]

    on = policy(max_pixels=1_000_000, adaptive=Adaptive(65_536, 28))
    plain, adapted = planned(policy(max_pixels=1_000_000)), planned(on)
    assert (plain.target, plain.changes) == (Size(992, 992), (Change.RESIZED,))
    assert adapted.changes == (Change.RESIZED, Change.ADAPTED)
    assert 65_536 <= adapted.target.pixels < plain.target.pixels
    assert adapted.after == served.family.image_tokens(adapted.target, served.checkpoint)
    assert reason_of(on, served, adapted) == {"reason": "adaptive"}
    again = replace(facts(adapted.target), detail=SMOOTH)
    assert planned(on, again).untouched
    for kept in (
        replace(large, detail=None),
        replace(large, detail=replace(SMOOTH, text_permille=900)),
    ):
        assert planned(on, kept) == plain
    assert planned(replace(on, geometry=Geometry.PRESERVE)).untouched
    assert planned(replace(on, mode=Mode.SHADOW)).untouched
    moving = replace(large, probe=replace(large.probe, frames=9))
    assert planned(on, moving).target == adapted.target
    assert planned(replace(on, animated=Selection(Several.MANY, 4, "sample")), moving).target == plain.target
    assert planned(replace(on, max_pixels=70_000)).target == planned(policy(max_pixels=70_000)).target


def test_detail_is_asked_for_only_where_it_decides() -> None:
    world = Setting(b"").world()
    on = Adaptive(300_000, 28)
    assert media_scope(policy(), world).measures_above_pixels is None
    assert media_scope(policy(adaptive=on), world).measures_above_pixels == 300_000
    assert media_scope(policy(adaptive=on, mode=Mode.SHADOW), world).measures_above_pixels == 300_000
    assert media_scope(policy(adaptive=on, geometry=Geometry.PRESERVE), world).measures_above_pixels is None
