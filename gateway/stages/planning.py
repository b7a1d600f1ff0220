"""What the journey and its explanation compute alike: the model served, the plans, the estimate, the cost.

Decided here: how policy, model and facts of the images meet. Not decided here: the order of stages (``journey``), any
number of a model (``models``), any limit (``policy``). Nothing here sends or keeps anything; what takes long is done
aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.errors import GatewayError
from gateway.models.book import Computed, ModelBook, ServedModel
from gateway.models.caps import Caps, plan_within
from gateway.models.family import TargetReason
from gateway.models.plan import PlanRules, plan_image
from gateway.models.sharing import Budget, share
from gateway.models.text import TextEstimate
from gateway.policy.dropping import batches_beyond, images_too_large
from gateway.policy.effective import ColourProfile, EffectivePolicy, Excess, Geometry, Orientation, Truncated
from gateway.ports import Accepts, Body, MediaScope, PromptCount
from gateway.record import ExchangeRecord
from gateway.stages.claiming import kv_bytes_held
from gateway.stages.exchange import Ports, World
from gateway.stages.frames import as_engine_sees
from gateway.stages.omission import leave_out
from gateway.stages.shares import adapted, lowered, measured_above, own_caps
from gateway.types import (
    BackendView,
    Call,
    Change,
    ImageForm,
    ImageFormat,
    ImagePart,
    ImagePlan,
    JsonObject,
    RequestCost,
    SourceFacts,
    TokenEstimate,
    Usage,
)
from gateway.types.per_request import per_request

# In a tile family a plan under a cap takes up to a millisecond, and sharing a budget several of them for each image.
ON_LOOP_IMAGES = 8


def cap_of(policy: EffectivePolicy, served: ServedModel) -> int:
    """The pixel cap in force: the policy's, or the served model's own where that is smaller."""
    own = served.checkpoint.max_pixels
    return own if policy.max_pixels is None else min(policy.max_pixels, own)


def media_scope(policy: EffectivePolicy, world: World) -> MediaScope:
    """On whose behalf, and within which bounds, images are looked at."""
    hosts = policy.hosts if world.may_fetch else ()
    return MediaScope(
        policy.tenant,
        policy.max_image_bytes,
        policy.max_input_pixels,
        hosts,
        world.media_deadline_s,
        accepts=Accepts(ImageFormat.PDF in policy.formats, policy.truncated is Truncated.SALVAGE),
        patience_s=policy.queue_timeout_s,
        weight=policy.weight,
        measures_above_pixels=measured_above(policy),
    )


@per_request(frozen=True, slots=True)
class Kept:
    """The images that go on, with their plans; the call knows which were left out."""

    call: Call
    facts: Sequence[SourceFacts]
    plans: tuple[ImagePlan, ...]


async def plan_kept(
    policy: EffectivePolicy,
    served: ServedModel,
    call: Call,
    facts: Sequence[SourceFacts],
    ports: Ports,
    tree: JsonObject,
) -> Kept:
    """`kept_images`; a request of many images is planned aside, so that no other waits for it."""
    version = ports.media.plan_version
    if len(facts) <= ON_LOOP_IMAGES:
        return kept_images(policy, served, call, facts, version, tree)
    return await ports.aside(lambda: kept_images(policy, served, call, facts, version, tree))


def kept_images(
    policy: EffectivePolicy,
    served: ServedModel,
    call: Call,
    facts: Sequence[SourceFacts],
    version: str,
    tree: JsonObject | None,
) -> Kept:
    """`plan_images`, and again without the oldest where all are too large together and the policy leaves those out."""
    if policy.history is not None and policy.history.tokens is not None and facts and not policy.shadow:
        call, facts = _within_history(policy, served, call, facts, version, tree)
    plans = plan_images(policy, served, call, facts, version)
    if policy.shadow or not plans or (policy.max_total_pixels is None and policy.max_image_tokens is None):
        return Kept(call, facts, plans)
    pixels, tokens = [plan.target.pixels for plan in plans], [plan.after.tokens for plan in plans]
    dropped = images_too_large(policy, call, pixels, tokens)
    if not dropped:
        return Kept(call, facts, plans)
    left = leave_out(call, dropped, tree)
    facts = [fact for index, fact in enumerate(facts) if index not in dropped]
    return Kept(left, facts, plan_images(policy, served, left, facts, version))


def _within_history(
    policy: EffectivePolicy,
    served: ServedModel,
    call: Call,
    facts: Sequence[SourceFacts],
    version: str,
    tree: JsonObject | None,
) -> tuple[Call, Sequence[SourceFacts]]:
    """Without the batches of oldest images above the history's tokens.

    Priced as they would be with all room they may have: what shares a budget out among the images of a request makes
    old ones smaller with each new one, and where the frontier stands may not depend on that. Priced again afterwards,
    because in some families images cost more when there are fewer of them.
    """
    alone = replace(policy, max_total_pixels=None, max_image_tokens=None)
    history = policy.history
    while history is not None and history.tokens is not None:
        tokens = [plan.after.tokens for plan in plan_images(alone, served, call, facts, version)]
        dropped = batches_beyond(history, call, tokens, history.tokens)
        if not dropped:
            break
        call = leave_out(call, dropped, tree)
        facts = [fact for index, fact in enumerate(facts) if index not in dropped]
    return call, facts


def plan_images(
    policy: EffectivePolicy, served: ServedModel, call: Call, facts: Sequence[SourceFacts], version: str
) -> tuple[ImagePlan, ...]:
    """One plan per image, in order; an image that cannot be planned names its part. Shadow mode resizes nothing.

    What the policy grants all images together is shared out where it says to shrink: first pixels, then tokens.
    """
    if not facts:
        return ()
    preserve = policy.geometry is Geometry.PRESERVE or policy.shadow
    alike = PlanRules(
        None,
        policy.background,
        policy.output,
        policy.jpeg_quality,
        preserve=preserve,
        version=version,
        buckets=policy.buckets,
        fidelity=policy.fidelity,
        keeps_tag=policy.orientation is Orientation.PRESERVE,
        to_srgb=policy.colour_profile is ColourProfile.SRGB,
        salvage=policy.truncated is Truncated.SALVAGE,
    )
    caps = own_caps(policy, call)[: len(facts)]
    suffices = adapted(policy, facts)
    rules = _capped(alike, caps, suffices)
    plans = _planned(served, call, facts, rules)
    if preserve:
        return plans
    most = policy.max_total_pixels
    if most is not None and policy.on_excess.max_total_pixels is Excess.SHRINK:
        caps = lowered(caps, [plan.target.pixels for plan in plans], most)
        rules = _capped(alike, caps, suffices)
        plans = _planned(served, call, facts, rules)
    budget = policy.max_image_tokens
    if policy.on_excess.max_image_tokens is not Excess.SHRINK or budget is None:
        return plans
    if sum(plan.after.tokens for plan in plans) <= budget:
        return plans
    sizes = [fact.probe.upright for fact in facts]
    shares = share(sizes, served.family, served.checkpoint, Budget(budget, None), caps)
    if shares is None:
        return plans  # too many even so: the check refuses, with the number that was asked for
    return _planned(
        served, call, facts, [replace(rule, cap_tokens=cap) for rule, cap in zip(rules, shares, strict=True)]
    )


def _capped(alike: PlanRules, caps: Sequence[Caps], suffices: Sequence[int | None]) -> list[PlanRules]:
    """The rules of each image under its own caps; those of images with the same caps are one object."""
    each = list(zip(caps, suffices, strict=True))
    made = {
        (cap, pixels): replace(alike, cap_pixels=cap.pixels, cap_side=cap.side, adapted_pixels=pixels)
        for cap, pixels in set(each)
    }
    return [made[key] for key in each]


def _planned(
    served: ServedModel, call: Call, facts: Sequence[SourceFacts], rules: Sequence[PlanRules]
) -> tuple[ImagePlan, ...]:
    family, checkpoint = served.family, served.checkpoint
    plans = []
    for part, fact, rule in zip(call.images, facts, rules, strict=False):  # no facts where shadow mode could not look
        try:
            plans.append(plan_image(_as_written(part, fact), family, checkpoint, rule))
        except GatewayError as error:
            raise error.at(part.name) from None
    if len(plans) < 2:
        return tuple(plans)
    # In some families the images of a request change each other's price.
    prices = family.request_tokens([plan.target for plan in plans], checkpoint)
    return tuple(
        plan if plan.after == price else replace(plan, after=price) for plan, price in zip(plans, prices, strict=True)
    )


def _as_written(part: ImagePart, fact: SourceFacts) -> SourceFacts:
    """Canonical as the part's form understands it: bare base64 is, if its true type is declared or need not be."""
    if part.form is ImageForm.EITHER:
        return replace(fact, canonical=fact.canonical or fact.bare_base64)
    if part.form is not ImageForm.BASE64:
        return fact
    return replace(fact, canonical=fact.bare_base64 and part.media_type == fact.probe.format.media_type)


def kv_bytes_of(policy: EffectivePolicy, served: ServedModel, estimate: TokenEstimate) -> int | None:
    """The fewest bytes of KV cache the request can come to hold; ``None`` where no rule asks or no layers are known."""
    return None if policy.max_kv_bytes is None else kv_bytes_held(served, estimate.prompt_lower_bound, estimate)


def reason_of(
    policy: EffectivePolicy, served: ServedModel, plan: ImagePlan, own: Caps | None = None
) -> dict[str, object]:
    """Why an image gets the size it gets, for people; with the engine's own knob where no size meets the cap.

    ``own`` are the image's own caps, where they are not ``max_pixels`` alone.
    """
    if policy.geometry is Geometry.PRESERVE or policy.shadow:
        return {"reason": "preserved"}
    if Change.ADAPTED in plan.changes:
        return {"reason": "adaptive"}
    alone = served.family.plan(plan.original, served.checkpoint, cap_pixels=policy.max_pixels, cap_tokens=None)
    if alone.reason is TargetReason.CAP_UNREACHABLE:
        return {"reason": alone.reason.value, "knob": served.family.knob}
    if alone.size == plan.target:
        return {"reason": alone.reason.value}
    if plan.target in policy.buckets:
        return {"reason": "bucket"}
    if own is not None:
        for reason, caps in (("detail", Caps(own.pixels)), ("max_side", own)):
            if plan_within(plan.original, served.family, served.checkpoint, caps).size == plan.target:
                return {"reason": reason}
    return {"reason": "token_budget" if policy.max_total_pixels is None else "shared_budget"}


def estimate_request(
    book: ModelBook,
    served: ServedModel,
    policy: EffectivePolicy,
    call: Call,
    plans: Sequence[ImagePlan],
    counted: PromptCount | None = None,
    *,
    video_tokens: int = 0,
) -> TokenEstimate:
    """Text, image and output tokens; without an output limit the policy's reserve, within what the context leaves.

    ``counted`` is the prompt by the model's own tokenizer, where there is one; the estimate is exact if it is certain.
    Where image counts have been disproved, the upper bound reserves what they were exceeded by.
    """
    text = book.estimate_text(served, call.text_bytes, call.message_count)
    if call.token_ids:
        ids = call.token_ids
        text = TextEstimate(text.expected + ids, text.lower_bound + ids, text.upper_bound + ids)
    certain = counted is not None and counted.is_certain and served.is_exact
    exact = certain and book.trusts_text(served)
    if counted is not None:
        text = _counted_text(counted, plans, text, exact=exact)
    image_tokens = sum(plan.after.tokens for plan in plans)
    overhead = sum(plan.after.prompt_tokens - plan.after.tokens for plan in plans)
    asked = call.output_limit_tokens
    reserve = policy.output_reserve_tokens if asked is None else asked
    if served.context_tokens is not None:
        media_tokens = image_tokens + overhead + video_tokens
        one = (text.lower_bound + media_tokens) // (call.prompts or 1)
        reserve = max(0, min(reserve, served.context_tokens - one))
    upper_bound = text.upper_bound + book.surplus_tokens(served, image_tokens)
    return TokenEstimate(
        text.expected,
        text.lower_bound,
        upper_bound,
        image_tokens,
        overhead,
        reserve * call.choices,
        exact,
        video_tokens,
    )


def _counted_text(
    counted: PromptCount, plans: Sequence[ImagePlan], estimated: TextEstimate, *, exact: bool
) -> TextEstimate:
    """The count less what the template writes around images, which is in the images' overhead."""
    tokens = counted.text_tokens - sum(plan.after.wrapper_tokens for plan in plans)
    if exact:
        return TextEstimate(tokens, tokens, tokens)
    return TextEstimate(tokens, min(tokens, estimated.lower_bound), max(tokens, estimated.upper_bound))


async def count_prompt(
    world: World, served: ServedModel, dialect: str, body: Body, tree: JsonObject, call: Call
) -> PromptCount | None:
    """The prompt by the model's own tokenizer; ``None`` where none is configured, or only the engine can tell."""
    if world.prompts is None or not world.prompts.covers(served.name, dialect):
        return None
    return await world.prompts.count(served.name, body, as_engine_sees(tree, call.images), call.text_bytes)


def cost_of(estimate: TokenEstimate, plans: Sequence[ImagePlan], video_patches: int = 0) -> RequestCost:
    """What the request asks of a backend: its prompt, its output reserve, the patches its images and videos make."""
    patches = sum(plan.after.vit_patches for plan in plans) + video_patches
    return RequestCost(estimate.prompt_tokens, estimate.output_tokens, patches)


def check_images(
    book: ModelBook,
    served: ServedModel,
    view: BackendView,
    plans: Sequence[ImagePlan],
    actual_tokens: int,
    record: ExchangeRecord,
) -> None:
    """Hold what an engine counted for the images against what it should have, and note what that showed.

    What is noted reproduces the deviation: the sizes as they were delivered, the checkpoint and the cap assumed.
    """
    sizes = [plan.target for plan in plans]
    cap = book.cap_on(served.name, view)
    try:
        verdict = book.learn_images(served, view, sizes, actual_tokens)
    except GatewayError:  # a shape that this backend's processor should have refused; nothing to compare
        return
    record.expected_image_tokens = verdict.expected_tokens
    if verdict.finding is None:
        return
    record.drift_finding = verdict.finding.value
    record.drift_inputs = {
        "checkpoint": served.checkpoint.name,
        "family": served.family.name,
        "sizes": [str(size) for size in sizes[:16]],
        "max_pixels": served.checkpoint.max_pixels if cap is None else cap,
        "learnt_max_pixels": verdict.learnt_max_pixels,
    }


def learn_pace(
    book: ModelBook, served: ServedModel, view: BackendView, plans: Sequence[ImagePlan], record: ExchangeRecord
) -> None:
    """Learn how fast a backend computes, from a stream's first event; where it held images, that tells nothing."""
    usage = record.usage
    if usage is None or not record.stream or record.first_chunk_s is None or record.first_byte_s is None:
        return
    if record.images_known or record.attempts != 1:
        return
    waited_s = next((seconds for stage, seconds in record.stages if stage == "forward"), 0.0)
    computed = Computed(usage.prompt_tokens, usage.cached_tokens or 0, tuple(plan.after.vit_patches for plan in plans))
    book.learn_pace(served, view.name, computed, waited_s + record.first_chunk_s - record.first_byte_s)


def check_text(
    book: ModelBook, served: ServedModel, counted: PromptCount | None, plans: Sequence[ImagePlan], usage: Usage
) -> bool | None:
    """Hold a prompt that its tokenizer counted against the engine's usage; ``None`` where that cannot be told."""
    if counted is None or not counted.is_certain or not served.is_exact:
        return None
    images = sum(plan.after.tokens + plan.after.struct_tokens for plan in plans)
    if usage.image_tokens not in {None, sum(plan.after.tokens for plan in plans)}:
        return None
    agrees = usage.prompt_tokens == counted.text_tokens + images
    book.learn_exact(served, agrees=agrees)
    return agrees
