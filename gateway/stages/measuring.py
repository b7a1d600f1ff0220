"""Stage *check (measured)* for the journey and its explanation: what was planned, held against the policy.

Decided here: that shadow mode is measured by what enforcement would have made of the images, since nothing is shrunk in
it, so that it finds what would be refused and says what would be saved. Not decided here: any limit (``policy``), any
number (``planning``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from gateway.errors import GatewayError
from gateway.models.book import ServedModel
from gateway.policy.check import check_measured
from gateway.policy.effective import EffectivePolicy, Mode
from gateway.policy.rule import MeasuredClip, MeasuredImage
from gateway.ports import PromptCount
from gateway.stages.exchange import Ports, World
from gateway.stages.planning import ON_LOOP_IMAGES, cap_of, estimate_request, kv_bytes_of
from gateway.stages.rehearsal import Rehearsal, rehearse
from gateway.types import Call, ImagePlan, SourceFacts, TokenEstimate
from gateway.types.per_request import per_request


@per_request(frozen=True, slots=True)
class Planned:
    """A request once its images are planned and its tokens estimated."""

    call: Call
    facts: Sequence[SourceFacts]
    plans: Sequence[ImagePlan]
    estimate: TokenEstimate
    counted: PromptCount | None = None
    clips: Sequence[MeasuredClip] = ()
    video_tokens: int = 0


@per_request(frozen=True, slots=True)
class Judged:
    """What a policy in shadow mode would refuse, and else the image tokens it would leave and what it would change.

    ``shadow_image_tokens`` None: enforced. Changes are counts by rule (`rehearsal.Rehearsal`).
    """

    findings: list[str]
    shadow_image_tokens: int | None = None
    shadow_changes: Mapping[str, int] = field(default_factory=dict)


async def judge(world: World, ports: Ports, policy: EffectivePolicy, served: ServedModel, given: Planned) -> Judged:
    """Raises what `check_measured` raises; in shadow mode nothing of the policy's."""
    rehearsal = None
    if policy.shadow and given.plans:
        rehearsal = await _rehearsal(ports, policy, served, given)
        if rehearsal is not None:
            given = _as_enforced(world, policy, served, given, rehearsal)
    measured = [
        MeasuredImage.of(part, fact, cap_of(policy, served), plan)
        for part, fact, plan in zip(given.call.images, given.facts, given.plans, strict=False)
    ]
    # Image tokens of an unknown or disproved model are estimates, and nothing is refused on those.
    context_tokens = served.context_tokens if served.is_exact else None
    if context_tokens is not None:
        # Of several prompts that are together longer than all their contexts, one is too long.
        context_tokens = None if given.call.prompts is None else context_tokens * given.call.prompts
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
    findings = [error.finding for error in errors]
    if not policy.shadow or not given.plans:
        return Judged(findings)
    return Judged(findings, given.estimate.image_tokens, {} if rehearsal is None else rehearsal.changes)


async def _rehearsal(ports: Ports, policy: EffectivePolicy, served: ServedModel, given: Planned) -> Rehearsal | None:
    """What enforcement would make of the images; ``None`` where it cannot be told."""
    enforced, version = replace(policy, mode=Mode.ENFORCE), ports.media.plan_version
    try:
        if len(given.facts) <= ON_LOOP_IMAGES:
            return rehearse(enforced, served, given.call, given.facts, version)
        return await ports.aside(lambda: rehearse(enforced, served, given.call, given.facts, version))
    except GatewayError:
        return None


def _as_enforced(
    world: World, policy: EffectivePolicy, served: ServedModel, given: Planned, rehearsal: Rehearsal
) -> Planned:
    """The same request with the images and plans that enforcement would leave."""
    kept = rehearsal.kept
    estimate = estimate_request(
        world.book, served, policy, kept.call, kept.plans, given.counted, video_tokens=given.video_tokens
    )
    return replace(given, call=kept.call, facts=kept.facts, plans=kept.plans, estimate=estimate)
