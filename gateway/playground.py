"""What the page shows of one picture: in several models side by side, and what would be delivered of it to one of them.

Decided here: how a picture becomes the chat request that is shown, and what is told of each model. Not decided here:
any number, plan or rule: they are the journey's, computed by the same workers and the same functions as a request's.
Nothing is reserved, sent, counted or remembered of it but by the caches of images. A model that no backend here serves
is priced as it ships.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import pybase64

from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import GatewayError, InvalidRequest
from gateway.explain import explain
from gateway.models.book import ServedModel
from gateway.models.closed import ClosedProfile, closed_profile
from gateway.models.image_price import image_price
from gateway.models.pace import Pace
from gateway.policy.effective import EffectivePolicy
from gateway.policy.keys import Caller
from gateway.policy.policyset import BUILTIN_REASON
from gateway.policy.resolve import resolve
from gateway.policy.shown import plain
from gateway.ports import Body, Looked, PrepareJob, SourceRef
from gateway.record import RequestHead
from gateway.splice.skeleton import cut
from gateway.stages.exchange import Ports, World
from gateway.stages.frames import spread
from gateway.stages.planning import Kept, kept_images, media_scope, reason_of
from gateway.stages.rehearsal import rule_behind
from gateway.stages.shares import own_caps
from gateway.types import (
    BackendView,
    Call,
    ContentDigest,
    ImageFormat,
    ImagePlan,
    JsonObject,
    PlacementDigest,
    Probe,
    RequestId,
    Size,
    SourceFacts,
    TenantId,
)

PATH = "/v1/chat/completions"
PROMPT = "Describe this picture."
MODELS_LIMIT = 8
SIZES_LIMIT = 32
SIDE_LIMIT = 100_000
DETAILS = ("auto", "low", "high", "original")

_DIALECT = OpenAIChat()
_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]{1,40}|application/pdf")
_NO_PICTURE = "data:image/jpeg;base64,AAAA"


@dataclass(frozen=True, slots=True)
class Choice:
    """For whom a picture is looked at. The first of ``models`` is the one it would be delivered to."""

    models: tuple[str, ...]
    tenant: TenantId
    task: str | None = None
    detail: str | None = None


Row = dict[str, object]


def chat_body(choice: Choice, url: str = _NO_PICTURE) -> bytes:
    """The chat request that the picture stands in."""
    image = {"url": url} if choice.detail is None else {"url": url, "detail": choice.detail}
    content = [{"type": "text", "text": PROMPT}, {"type": "image_url", "image_url": image}]
    body = {"model": choice.models[0], "messages": [{"role": "user", "content": content}]}
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def picture_body(choice: Choice, picture: bytes, media_type: str) -> bytes:
    """The same with a picture inline, under the type its sender believes it has."""
    kind = media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"
    return chat_body(choice, f"data:{kind};base64,{pybase64.b64encode(picture).decode()}")


def check_choice(choice: Choice) -> None:
    """Raises InvalidRequest, naming the part."""
    if not 1 <= len(choice.models) <= MODELS_LIMIT or not all(0 < len(name) <= 256 for name in choice.models):
        raise InvalidRequest(f"Choose 1 to {MODELS_LIMIT} models.", part="models")
    if choice.detail is not None and choice.detail not in DETAILS:
        raise InvalidRequest(f"The detail must be one of: {', '.join(DETAILS)}.", part="detail")


@dataclass(frozen=True, slots=True)
class _Sight:
    """A request with a picture, and how the picture's facts are come by under a policy."""

    choice: Choice
    call: Call
    tree: JsonObject
    look: Callable[[EffectivePolicy], Awaitable[Sequence[SourceFacts]]]
    ports: Ports
    world: World

    def policy(self, model: str) -> EffectivePolicy:
        """Raises NotPermitted, ModelNotFound."""
        policies, choice = self.world.policies, self.choice
        return resolve(policies, tenant=choice.tenant, header_task=choice.task, model=model, body_task=None)

    def served(self, policy: EffectivePolicy, model: str) -> tuple[ServedModel, Sequence[BackendView]]:
        """The model with the caps of the backends that serve it, and those."""
        name = policy.model or model
        there = [view for view in self.ports.upstream.views() if not view.models or name in view.models]
        return self.world.book.serve(name, there), there

    async def kept(self, policy: EffectivePolicy, served: ServedModel, facts: Sequence[SourceFacts]) -> Kept:
        """The plans of what the file holds; made aside, since nobody who clicks may hold up requests."""
        call, many = spread(policy, self.call, facts)
        version = self.ports.media.plan_version
        return await self.ports.aside(lambda: kept_images(policy, served, call, many, version, self.tree))


async def price_sizes(sizes: Sequence[Size], choice: Choice, ports: Ports, world: World) -> dict[str, object]:
    """What pictures of these sizes cost in every model, as if each were a JPEG: ``sizes`` holds a list of rows each.

    Raises InvalidRequest for sizes or a choice that cannot be.
    """
    check_choice(choice)
    sides = [side for size in sizes for side in (size.width, size.height)]
    if not 1 <= len(sizes) <= SIZES_LIMIT or not all(1 <= side <= SIDE_LIMIT for side in sides):
        raise InvalidRequest(f"Give 1 to {SIZES_LIMIT} sizes of 1 to {SIDE_LIMIT} pixels a side.", part="sizes")
    body = chat_body(choice)
    tree = cut(body, 0, len(body)).tree
    call = _DIALECT.read(tree)
    return {"sizes": [await _rows(_Sight(choice, call, tree, _known(size), ports, world)) for size in sizes]}


def _known(size: Size) -> Callable[[EffectivePolicy], Awaitable[Sequence[SourceFacts]]]:
    probe = Probe(ImageFormat.JPEG, size)
    facts = [SourceFacts(0, PlacementDigest(b""), ContentDigest(b""), probe, canonical=True)]

    async def look(_: EffectivePolicy) -> Sequence[SourceFacts]:
        return facts

    return look


async def show_picture(body: Body, choice: Choice, ports: Ports, world: World) -> dict[str, object]:
    """All there is to show of a picture in ``body`` (`picture_body`), which the caller keeps and closes.

    ``rows`` are of each model, ``explained`` is the gateway's own explanation for the first, ``delivered`` the picture
    as it would be sent there (``None``: as it came). A picture that cannot be looked at is a row's ``error``.
    """
    check_choice(choice)
    skeleton = await ports.cut_elsewhere(body)
    call = _DIALECT.read(skeleton.tree)

    async def look(policy: EffectivePolicy) -> Sequence[SourceFacts]:
        looked = await _looked(body, call, policy, ports, world)
        looked.close()
        return looked.facts

    sight = _Sight(choice, call, skeleton.tree, look, ports, world)
    rows = await _rows(sight)
    as_tenant = replace(world, admit=lambda _: Caller(choice.tenant))
    return {
        "rows": rows,
        "explained": await explain(body, _head(choice, body), _DIALECT, ports, as_tenant),
        "delivered": None if {"error", "closed"} & rows[0].keys() else await _deliver(body, sight),
    }


def _head(choice: Choice, body: Body) -> RequestHead:
    headers = () if choice.task is None else (("x-vlmgw-task", choice.task),)
    return RequestHead("POST", PATH, "", headers, body.stop - body.start, RequestId("playground"))


async def _looked(body: Body, call: Call, policy: EffectivePolicy, ports: Ports, world: World) -> Looked:
    refs = [SourceRef(part.name, part.source) for part in call.images]
    return await ports.media.look(body, refs, media_scope(policy, world))


async def _deliver(body: Body, sight: _Sight) -> dict[str, object] | None:
    """The first picture as the first model's backend would get it; ``None`` where it goes as it came."""
    model, ports, world = sight.choice.models[0], sight.ports, sight.world
    policy = sight.policy(model)
    served, _ = sight.served(policy, model)
    looked = await _looked(body, sight.call, policy, ports, world)
    try:
        kept = await sight.kept(policy, served, looked.facts)
        if not kept.plans or kept.plans[0].keeps_file or policy.shadow:
            return None
        part = kept.call.images[0]
        job = PrepareJob(SourceRef(part.name, part.source), kept.facts[0], kept.plans[0])
        (result,) = await ports.media.prepare(body, looked, [job], media_scope(policy, world))
    finally:
        looked.close()
    made = result.prepared
    return {
        "data_url": made.data_url.decode(),
        "bytes": made.file_byte_count,
        "format": made.format.value,
        "size": [made.size.width, made.size.height],
    }


async def _rows(sight: _Sight) -> list[Row]:
    """One row of each model; one that cannot be priced has ``error``."""
    rows: list[Row] = []
    for model in sight.choice.models:
        try:
            rows.append(await _row(model, sight))
        except GatewayError as error:
            rows.append({"model": model, "error": error.code, "message": error.message, "rule": error.rule})
    return rows


async def _row(model: str, sight: _Sight) -> Row:
    policy = sight.policy(model)
    facts = await sight.look(policy)
    served, there = sight.served(policy, model)
    profile = closed_profile(model)
    if profile is not None and not served.match.known:
        return _closed_row(model, profile, sight.choice, facts[0])
    kept = await sight.kept(policy, served, facts)
    pace = sight.world.book.pace_on(served, there[0].name) if there else Pace()
    row: Row = {
        "model": model,
        "served": bool(there),
        "checkpoint": served.checkpoint.name,
        "family": served.family.name,
        "note": served.match.note,
        "mode": policy.mode.value,
        "task": policy.task,
        "task_reason": policy.task_reason,
        "pictures": len(kept.plans),
        "bytes": sum(fact.byte_count for fact in facts),
        "format": facts[0].probe.format.value,
        "is_calibrated": pace.samples > 0,
    }
    if not kept.plans:
        return row | {"error": "omitted", "message": "The policy leaves this picture out."}
    reason = reason_of(policy, served, kept.plans[0], own_caps(policy, kept.call)[0])
    return row | _planned(kept.plans, served, pace) | {"why": reason | _rule(str(reason["reason"]), policy, served)}


def _planned(plans: Sequence[ImagePlan], served: ServedModel, pace: Pace) -> Row:
    """Sizes and grids of the first picture, prices of all."""
    first, checkpoint = plans[0], served.checkpoint
    prices = [image_price(plan.after, checkpoint, pace) for plan in plans]
    kv = [price.kv_bytes for price in prices if price.kv_bytes is not None]
    prefill = [price.prefill_ms for price in prices if price.prefill_ms is not None]
    encode = [price.encode_ms for price in prices if price.encode_ms is not None]
    return {
        "original": [first.original.width, first.original.height],
        "target": [first.target.width, first.target.height],
        "changes": [change.value for change in first.changes],
        "untouched": first.untouched,
        "grid_original": list(first.before.grid),
        "grid": list(first.after.grid),
        "patches_a_token": checkpoint.merge,
        "patches_a_tile": _patches_a_tile(served),
        "tokens_original": sum(plan.before.tokens for plan in plans),
        "tokens": sum(plan.after.tokens for plan in plans),
        "prompt_tokens": sum(plan.after.prompt_tokens for plan in plans),
        "position_advance": sum(plan.after.position_advance for plan in plans),
        "patches": sum(plan.after.vit_patches for plan in plans),
        "kv_bytes": sum(kv) if kv else None,
        "prefill_ms": round(sum(prefill), 1) if prefill else None,
        "encode_ms": round(sum(encode), 1) if encode else None,
    }


def _patches_a_tile(served: ServedModel) -> int:
    """How many patches of the grid stand side by side in one tile; 0 where images are not cut."""
    checkpoint = served.checkpoint
    if checkpoint.tiles is None or not checkpoint.patch or checkpoint.tiles.side % checkpoint.patch:
        return 0
    return checkpoint.tiles.side // checkpoint.patch


def _rule(reason: str, policy: EffectivePolicy, served: ServedModel) -> Row:
    """The rule behind a size, its value, and where that was written."""
    if reason == "engine_cap":
        cap = served.checkpoint.max_pixels
        return {"key": "engine cap", "value": cap, "source": "the backend, or the checkpoint as it ships"}
    key = "geometry" if reason == "preserved" and not policy.shadow else rule_behind(reason)
    if reason == "preserved" and policy.shadow:
        key = "mode"
    if reason == "adaptive":
        key = "adaptive"
    if key is None or key not in policy.reasons:
        return {}
    return {"key": key, "value": plain(getattr(policy, key)), "source": policy.reasons.get(key, BUILTIN_REASON)}


def _closed_row(model: str, profile: ClosedProfile, choice: Choice, fact: SourceFacts) -> Row:
    """A closed API beside the others, at the level of detail asked for where it has that."""
    level = choice.detail if choice.detail in profile.levels else profile.default_level
    price = profile.image_tokens(fact.probe.upright, level)
    upright = fact.probe.upright
    return {
        "model": model,
        "served": False,
        "closed": True,
        "detail": level,
        "note": f"{model}: as its vendor documents it, not observed; detail {level}",
        "bytes": fact.byte_count,
        "format": fact.probe.format.value,
        "pictures": 1,
        "original": [upright.width, upright.height],
        "target": [price.size.width, price.size.height],
        "tokens_original": price.tokens,
        "tokens": price.tokens,
        "kv_bytes": None,
        "prefill_ms": None,
        "encode_ms": None,
    }
