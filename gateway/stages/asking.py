"""What routing is asked about a request: its content's identities and its needs, from all that stages found.

Decided here: which facts make a question, and that the prefix chain is made only where there is a choice. Not decided
here: the answer (`routing`), what it costs (`planning`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from gateway.dialects import engines_of
from gateway.models.book import ServedModel
from gateway.policy.effective import CacheSalt, EffectivePolicy
from gateway.routing.ask import RouteAsk
from gateway.routing.chain import Chain, Medium, chain_of
from gateway.routing.hashing import derived, spread
from gateway.routing.holding import RouteKey
from gateway.stages.clips import ClipWork
from gateway.stages.serving import model_of
from gateway.types import BackendView, Call, ImagePlan, JsonObject, RequestCost, SourceFacts, TokenEstimate
from gateway.types.per_request import per_request


@per_request(frozen=True, slots=True)
class Content:
    """A request's content: its tree with the body's bytes behind it, and its media as far as they were looked at."""

    tree: JsonObject
    view: Callable[[int, int], memoryview]
    call: Call
    facts: Sequence[SourceFacts]
    plans: Sequence[ImagePlan]
    clips: ClipWork


def ask_of(
    policy: EffectivePolicy,
    served: ServedModel,
    content: Content,
    estimate: TokenEstimate,
    cost: RequestCost,
    views: Sequence[BackendView],
    *,
    request_id: str,
    path: str,
) -> RouteAsk:
    """The question for one chat request; ``views`` only tell whether there is a choice."""
    call, clips = content.call, content.clips
    return RouteAsk(
        model=model_of(policy, served),
        key=key_of(policy, content, estimate, is_choice=len(views) > 1),
        prompt_tokens=cost.prompt_tokens,
        kv_tokens=cost.kv_tokens,
        needs_vision=bool(call.images) or clips.has_video,
        needs_frames=clips.needs_frames,
        videos=len(clips.placements),
        is_exact=served.is_exact,
        request_id=request_id,
        engines=engines_of(path),
    )


def key_of(policy: EffectivePolicy, content: Content, estimate: TokenEstimate, *, is_choice: bool) -> RouteKey:
    """The content's identities; in shadow mode images may have facts without plans."""
    facts, plans, clips = content.facts, content.plans, content.clips
    images = [
        *map(sent_digest, facts, plans),
        *[fact.placement for fact in facts[len(plans) :]],
    ]
    media = _media(content, images)
    chain = _chain(policy, content, media, estimate) if is_choice else Chain()
    videos = clips.placements
    if not facts and not videos:
        return RouteKey(chain=chain.links, chain_tokens=chain.tokens, home=chain.home)
    patches = [plan.after.vit_patches for plan in plans]
    if videos and len(plans) == len(facts):
        patches += clips.video_patches
    return RouteKey(
        (*images, *videos),
        tuple(patches),
        tuple([plan.after.tokens for plan in plans]),
        chain.links,
        chain.tokens,
        scope=_seed(policy.tenant),
        home=chain.home,
        ends=_ends([media.get(id(part.source)) for part in content.call.images], chain),
    )


def sent_digest(fact: SourceFacts, plan: ImagePlan) -> bytes:
    """What engines are given of a file: they hold a picture of one size, and know nothing of it at another."""
    return fact.placement if plan.keeps_file else derived(fact.placement, plan.picture.encode())


def _media(content: Content, digests: Sequence[bytes]) -> dict[int, Medium]:
    """Planned images by the identity of their source in the tree; several frames of one source are one medium."""
    media: dict[int, Medium] = {}
    for part, fact, plan, digest in zip(content.call.images, content.facts, content.plans, digests, strict=False):
        known = media.get(id(part.source))
        if known is None:
            media[id(part.source)] = Medium(digest, plan.after.prompt_tokens, fact.placement)
        else:
            tokens = known.tokens + plan.after.prompt_tokens
            media[id(part.source)] = Medium(derived(known.digest, digest), tokens, fact.placement)
    return media


def _ends(media: Sequence[Medium | None], chain: Chain) -> tuple[int, ...]:
    """Where the images end in the prompt, as long as they come in its order."""
    known = dict(reversed(chain.ends))  # of a picture that is there twice, the first
    ends: list[int] = []
    for medium in media:
        end = None if medium is None else known.get(medium.digest)
        if end is None or (ends and end < ends[-1]):
            break
        ends.append(end)
    return tuple(ends)


def _chain(policy: EffectivePolicy, content: Content, media: Mapping[int, Medium], estimate: TokenEstimate) -> Chain:
    """The prefix chain, of its own for every model and, where a cache salt separates them, tenant or user."""
    call = content.call
    salted = policy.cache_salt is not CacheSalt.NONE
    user = call.user or "" if policy.cache_salt is CacheSalt.USER else ""
    seed = _seed(policy.model or "", policy.tenant if salted else "", user)
    return chain_of(content.tree, call.prompt_field, content.view, media, estimate.text_tokens, seed)


@lru_cache(maxsize=4096)
def _seed(*words: str) -> int:
    return spread("\0".join(words).encode("utf-8", "surrogatepass"))
