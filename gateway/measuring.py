"""Stage *check (measured)* for the journey and its explanation: what was planned, held against the policy.

Decided here: that shadow mode is measured by what enforcement would have made of the images, since nothing is shrunk in
it, so that it finds what would be refused and says what would be saved. Not decided here: any limit (``policy``), any
number (``planning``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import GatewayError
from gateway.exchange import Ports, World
from gateway.models.book import ServedModel
from gateway.planning import cap_of, estimate_request, kv_bytes_of, plan_all
from gateway.policy.check import check_measured
from gateway.policy.effective import EffectivePolicy, Mode
from gateway.policy.rule import MeasuredClip, MeasuredImage
from gateway.ports import PromptCount
from gateway.types import Call, ImagePlan, SourceFacts, TokenEstimate


@dataclass(frozen=True, slots=True)
class Planned:
    """A request once its images are planned and its tokens estimated."""

    call: Call
    facts: Sequence[SourceFacts]
    plans: Sequence[ImagePlan]
    estimate: TokenEstimate
    counted: PromptCount | None = None
    clips: Sequence[MeasuredClip] = ()
    video_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """Codes of what a policy in shadow mode would refuse, and the image tokens it would leave (``None``: enforced)."""

    findings: list[str]
    shadow_image_tokens: int | None = None


async def judge(world: World, ports: Ports, policy: EffectivePolicy, served: ServedModel, given: Planned) -> Judged:
    """Raises what `check_measured` raises; in shadow mode nothing of the policy's."""
    if policy.shadow and given.plans:
        given = await _as_enforced(world, ports, policy, served, given)
    measured = [
        MeasuredImage.of(part, fact, cap_of(policy, served), plan)
        for part, fact, plan in zip(given.call.images, given.facts, given.plans, strict=False)
    ]
    # Image tokens of an unknown or disproved model are estimates, and nothing is refused on those.
    context_tokens = served.context_tokens if served.is_exact else None
    kv_bytes = kv_bytes_of(policy, served, given.estimate)
    errors = check_measured(
        policy,
        measured,
        given.estimate,
        context_tokens,
        kv_bytes=kv_bytes,
        clips=given.clips,
        prompt_field=given.call.prompt_field,
    )
    saved = given.estimate.image_tokens if policy.shadow and given.plans else None
    return Judged([error.code for error in errors], saved)


async def _as_enforced(
    world: World, ports: Ports, policy: EffectivePolicy, served: ServedModel, given: Planned
) -> Planned:
    """The same request with the plans that enforcement would make; as it is where there are none."""
    enforced = replace(policy, mode=Mode.ENFORCE)
    try:
        plans = await plan_all(enforced, served, given.call, given.facts, ports)
    except GatewayError:
        return given
    estimate = estimate_request(
        world.book, served, enforced, given.call, plans, given.counted, video_tokens=given.video_tokens
    )
    return replace(given, plans=plans, estimate=estimate)
