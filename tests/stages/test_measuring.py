"""What was planned, held against the policy: enforced as it is, in shadow mode as it would have been."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ImageTooLarge, TooManyTokens
from gateway.policy.effective import EffectivePolicy, Excess, Mode, OnExcess
from gateway.stages.measuring import Judged, Planned, judge
from gateway.stages.planning import estimate_request, plan_images
from gateway.stages.serving import served_model
from gateway.types import Size
from tests.journey.driver import drive
from tests.journey.fakes import facts
from tests.journey.scenes import Setting
from tests.policy.examples import call, part, policy

SETTING = Setting(b"{}")
CALL = call(part(0), part(1))
FACTS = (facts(Size(2048, 2048)), facts(Size(512, 512), number=1))


def judged(rules: EffectivePolicy) -> Judged:
    world, ports = SETTING.world(), SETTING.scene().ports
    served = served_model(world.book, rules, SETTING.views)
    plans = plan_images(rules, served, CALL, FACTS, "v")
    estimate = estimate_request(world.book, served, rules, CALL, plans)
    found: list[Judged] = []

    async def work() -> None:
        found.append(await judge(world, ports, rules, served, Planned(CALL, FACTS, plans, estimate)))

    escaped = drive(work()).escaped
    if escaped is not None:
        raise escaped
    return found[0]


def test_enforced_it_refuses_and_has_nothing_else_to_tell() -> None:
    assert judged(policy()) == Judged([])
    with pytest.raises(ImageTooLarge):
        judged(policy(max_total_pixels=10**6, on_excess=OnExcess(max_total_pixels=Excess.REJECT)))
    with pytest.raises(TooManyTokens):
        judged(policy(max_kv_bytes=1_000))


def test_shadow_mode_finds_what_would_be_refused_and_not_what_would_be_shrunk() -> None:
    shadow = policy(mode=Mode.SHADOW, max_total_pixels=786_432, max_image_tokens=700)
    found = judged(shadow)
    assert found.findings == []
    assert found.shadow_image_tokens is not None
    assert found.shadow_image_tokens <= 700
    rejecting = replace(shadow, max_image_tokens=None, on_excess=OnExcess(max_total_pixels=Excess.REJECT))
    assert judged(rejecting).findings == ["image_too_large:max_total_pixels"]
    assert judged(replace(shadow, max_image_tokens=1)).findings == ["too_many_tokens:max_image_tokens"]
