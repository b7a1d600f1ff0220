"""What routing is asked about a request: its content's identities and its needs, from all that stages found.

Decided here: which facts make a question. Not decided here: the answer (`routing`), what it costs (`planning`).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.clips import ClipWork
from gateway.dialects import engines_of
from gateway.policy.effective import EffectivePolicy
from gateway.routing.ask import RouteAsk
from gateway.routing.holding import RouteKey
from gateway.types import Call, ImagePlan, RequestCost, SourceFacts


def ask_of(
    policy: EffectivePolicy,
    call: Call,
    facts: Sequence[SourceFacts],
    plans: Sequence[ImagePlan],
    clips: ClipWork,
    cost: RequestCost,
    *,
    request_id: str,
    path: str,
) -> RouteAsk:
    """The question for one chat request."""
    videos = clips.placements
    return RouteAsk(
        model=policy.model,
        key=key_of(facts, plans, clips),
        prompt_tokens=cost.prompt_tokens,
        kv_tokens=cost.kv_tokens,
        needs_vision=bool(call.images) or clips.has_video,
        needs_frames=clips.needs_frames,
        videos=len(videos),
        request_id=request_id,
        engines=engines_of(path),
    )


def key_of(facts: Sequence[SourceFacts], plans: Sequence[ImagePlan], clips: ClipWork) -> RouteKey:
    """The content's identities; in shadow mode images may have facts without plans."""
    videos = clips.placements
    if not facts and not videos:
        return RouteKey()
    patches = [plan.after.vit_patches for plan in plans]
    tokens = [plan.after.prompt_tokens for plan in plans]
    if videos and len(plans) == len(facts):
        patches += clips.video_patches
    return RouteKey((*[fact.placement for fact in facts], *videos), tuple(patches), tuple(tokens))
