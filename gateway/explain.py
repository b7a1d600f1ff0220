"""What would be done with a request, and why, without doing it: resolution, plan, estimate, decision.

Decided here: the shape of the explanation. Not decided here: any of the answers; the stages are those of the journey,
called in its order, with nothing reserved, prepared or sent. Images are looked at (that needs a worker, no backend).

Whose body it is stands in the query (``?path=/v1/messages``) or in ``x-vlmgw-path``, here as for ``/v1/prepare``; chat
without either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from gateway.dialects import Dialect
from gateway.errors import GatewayError, InvalidRequest
from gateway.models.book import ServedModel
from gateway.models.cost import encoder_flops, prefill_flops
from gateway.models.positions import next_position
from gateway.policy.check import check_declared
from gateway.policy.effective import EffectivePolicy
from gateway.policy.shown import plain
from gateway.ports import Body, Client, SourceRef
from gateway.quota.claim import Charge, Claim
from gateway.quota.standing import amount_of, window_of
from gateway.record import RequestHead
from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.splice.skeleton import cut
from gateway.stages.asking import Content, ask_of
from gateway.stages.claiming import claim_of, kv_bytes_held
from gateway.stages.clips import ClipWork, explained
from gateway.stages.defaulting import with_parameters
from gateway.stages.exchange import Ports, World, conclude, new_record, policy_for
from gateway.stages.frames import spread
from gateway.stages.identities import image_ids
from gateway.stages.measuring import Planned, judge
from gateway.stages.omission import as_enforced, within_count
from gateway.stages.planning import (
    cost_of,
    count_prompt,
    estimate_request,
    media_scope,
    plan_kept,
    reason_of,
)
from gateway.stages.prefixes import Spoken, naming_blocks
from gateway.stages.serving import served_model
from gateway.stages.shares import own_caps
from gateway.types import BackendName, BackendView, Call, ImagePlan, MediumKind, SourceFacts, TokenEstimate

PATH_HEADER = "x-vlmgw-path"
_DEFAULT_PATH = "/v1/chat/completions"


def asked_path(query: str, header: str | None) -> str:
    """Whose body a request holds, by its query as it was sent, else by ``PATH_HEADER``."""
    return parse_qs(query).get("path", [header or _DEFAULT_PATH])[-1]


def unread(path: str) -> InvalidRequest:
    """The refusal of a path whose bodies no dialect reads."""
    return InvalidRequest(f"The gateway reads no {path[:128]!r}.", part="path")


async def explain(body: Body, head: RequestHead, dialect: Dialect, ports: Ports, world: World) -> dict[str, object]:
    """Explain one request body. The caller keeps and closes ``body``. A refusal is part of the explanation."""
    told: dict[str, object] = {}
    try:
        await _tell(told, body, head, dialect, ports, world)
    except GatewayError as error:
        told |= refused(error)
    return told


def refused(error: GatewayError) -> dict[str, object]:
    """What an explanation holds of a refusal."""
    return {"refused": _refusal(error) | {"detail": error.detail}}


async def answer_estimate(client: Client, dialect: Dialect, ports: Ports, world: World) -> None:
    """Answer a request with what would be done with it, on the client's own port; nothing is sent.

    A request that cannot be read, or whose sender is not known, is refused as the journey would; a later refusal is
    part of the answer. What only operators should see (lines of policies, how backends compared) is left out.
    """

    async def stages() -> None:
        body = await client.read(world.max_body_bytes)
        told: dict[str, object] = {}
        try:
            await _tell(told, body, client.head, dialect, ports, world)
        except GatewayError as error:
            if "call" not in told:
                raise
            told["refused"] = _refusal(error)
        finally:
            body.close()
        answer = json.dumps(_public(told)).encode()
        record.status = 200
        headers = (("Content-Type", "application/json"), ("x-request-id", client.head.request_id))
        await client.start(200, headers, len(answer))
        await client.write(answer)
        await client.finish()

    record = new_record(client, "estimate", ports.clock)
    await conclude(client, ports, record, stages())


def _refusal(error: GatewayError) -> dict[str, object]:
    return {
        "code": error.code,
        "status": error.status,
        "message": error.message,
        "part": error.part,
        "rule": error.rule,
    }


def _public(told: dict[str, object]) -> dict[str, object]:
    """Without the policies' lines and the decision's trail."""
    hidden = {"policy": "values", "decision": "trail"}
    return {
        key: {name: each for name, each in value.items() if name != hidden.get(key)}
        if isinstance(value, dict)
        else value
        for key, value in told.items()
    }


async def _tell(
    told: dict[str, object], body: Body, head: RequestHead, dialect: Dialect, ports: Ports, world: World
) -> None:
    caller = world.admit(head)
    tree = cut(body.buffer, body.start, body.stop).tree
    call = dialect.read(tree)
    told["call"] = _call(call)
    policy = policy_for(world, caller, head, call, tree)
    told["policy"] = _policy(policy)
    call = with_parameters(policy, call, tree)
    views = ports.upstream.views()
    served = served_model(world.book, policy, views, head.path)
    told["model"] = _model(served, world)
    call = within_count(policy, call, tree)
    findings = [error.finding for error in check_declared(policy, as_enforced(policy, call))]
    call, facts = spread(policy, call, await _look(body, call, policy, ports, world, findings))
    served = world.book.beside_text(served, call.text_bytes, call.message_count)
    kept = await plan_kept(policy, served, call, facts, ports, tree)
    call, facts, plans = kept.call, kept.facts, kept.plans
    if call.omitted:
        told["omitted"] = [part.name for part in call.omitted]
    scope = media_scope(policy, world)
    told["images"] = [
        told_image(part.name, fact, plan)
        | reason_of(policy, served, plan, own)
        | {"is_prepared": plan.keeps_file or ports.media.peek(scope, fact, plan)}
        for part, fact, plan, own in zip(call.images, facts, plans, own_caps(policy, call), strict=False)
    ]
    clips = ClipWork(policy, served, call, views)
    try:
        await clips.look(body, ports.clips, world, findings)
    finally:
        clips.close()
    if clips.items:
        told["clips"] = explained(clips)
    counted = await count_prompt(world, served, dialect.name, body, tree, call)
    estimate = estimate_request(world.book, served, policy, call, plans, counted, video_tokens=clips.tokens)
    around = estimate.text_tokens + estimate.image_overhead_tokens
    told["estimate"] = told_estimate(estimate) | {
        "next_position": next_position(around, [plan.after for plan in plans])
    }
    judged = await judge(
        world, ports, policy, served, Planned(call, facts, plans, estimate, counted, clips.measured, clips.tokens)
    )
    findings += judged.findings
    told["findings"] = findings
    if judged.shadow_image_tokens is not None:
        told["shadow_image_tokens"] = judged.shadow_image_tokens
        told["shadow_changes"] = dict(judged.shadow_changes)
    claim = claim_of(policy, served, call, estimate, plans, views)
    told["budget"] = _budget(claim, policy, estimate, ports.budgets.inflight_kv_tokens(caller.tenant))
    cost = cost_of(estimate, plans, clips.patches)
    content = Content(tree, body.view, call, facts, plans, clips)
    ask = ask_of(policy, served, content, estimate, cost, views, request_id=head.request_id, path=head.path)
    ids = image_ids(world.identify, policy, call, facts, plans)
    ask = naming_blocks(ask, Spoken(counted, estimate, policy, call, plans, ids), world.cache_salt)
    told["decision"], backend = _decision(views, ask, ports, world)
    told["cost"] = _cost(world, served, backend, estimate, plans)


def _decision(
    views: Sequence[BackendView], ask: RouteAsk, ports: Ports, world: World
) -> tuple[dict[str, object], BackendName]:
    """The backend that would be chosen; where none is configured there is nothing to choose, and nothing refused."""
    if not views:
        return {"backend": None, "reason": "no backend is configured", "known_images": 0, "trail": []}, BackendName("")
    decision = decide(views, ask, ports.upstream.holdings(ask.key), world.routing)
    told: dict[str, object] = {
        "backend": decision.backend,
        "reason": decision.reason,
        "known_images": decision.known_images,
        "known_prefix_tokens": decision.holding.prefix_tokens,
        "first_token_ms": round(decision.ahead.expected_s * 1e3, 1),
        "exact_prefix_tokens": decision.holding.prefix_tokens if decision.holding.exact else None,
        "trail": list(decision.trail),
    }
    return told, decision.backend


def _budget(claim: Claim, policy: EffectivePolicy, estimate: TokenEstimate, held_tokens: int) -> dict[str, object]:
    limit = policy.kv_tokens_in_flight
    return {
        "kv_tokens": estimate.kv_tokens,
        "inflight_kv_tokens": held_tokens,
        "limit_kv_tokens": limit,
        "left_kv_tokens": None if limit is None else max(0, limit - held_tokens),
        "holds": {hold.rule: {"amount": hold.amount, "limit": hold.limit} for hold in claim.holds},
        "charges": [_charge(charge) for charge in claim.charges],
        "priority": claim.priority.name.lower(),
        "cost": claim.cost,
    }


def _charge(charge: Charge) -> dict[str, object]:
    return {
        "rule": charge.rule,
        "amount": amount_of(charge.unit, charge.amount),
        "limit": amount_of(charge.unit, charge.rate.amount),
        "window": window_of(charge.rate),
    }


async def _look(
    body: Body, call: Call, policy: EffectivePolicy, ports: Ports, world: World, findings: list[str]
) -> Sequence[SourceFacts]:
    """Facts of every image; none where shadow mode could not look, as in the journey."""
    if not call.images:
        return ()
    refs = [SourceRef(part.name, part.source) for part in call.images]
    try:
        looked = await ports.media.look(body, refs, media_scope(policy, world))
    except GatewayError as error:
        if not policy.shadow:
            raise
        findings.append(error.finding)
        return ()
    looked.close()
    return looked.facts


def _call(call: Call) -> dict[str, object]:
    return {
        "model": call.model,
        "stream": call.stream,
        "images": len(call.images),
        "videos": sum(part.kind is MediumKind.VIDEO for part in call.other_media),
        "sounds": sum(part.kind is MediumKind.AUDIO for part in call.other_media),
        "text_bytes": call.text_bytes,
        "messages": call.message_count,
        "output_limit_tokens": call.output_limit_tokens,
        "stripped_fields": [".".join(str(step) for step in pointer) for pointer in call.foreign_fields],
    }


def _model(served: ServedModel, world: World) -> dict[str, object]:
    return {
        "name": served.name,
        "family": served.family.name,
        "checkpoint": served.checkpoint.name,
        "how": served.match.how.value,
        "note": served.match.note,
        "max_pixels": served.checkpoint.max_pixels,
        "learnt_max_pixels": dict(world.book.learnt_caps(served.name)),
        "is_exact": served.is_exact,
        "context_tokens": served.context_tokens,
    }


def _policy(policy: EffectivePolicy) -> dict[str, object]:
    reasons: Mapping[str, str] = policy.reasons
    return {
        "tenant": policy.tenant,
        "task": policy.task,
        "task_reason": policy.task_reason,
        "mode": policy.mode.value,
        "profile": policy.profile.value,
        "version": policy.policy_version,
        # A tenant's keys that ended in task and model above (default_task, model_aliases) have no value of their own.
        "values": {
            key: {"value": plain(getattr(policy, name)), "reason": reasons[key]}
            for key in reasons
            if hasattr(policy, name := key.rpartition(".")[2])
        },
    }


def told_image(name: str, fact: SourceFacts, plan: ImagePlan) -> dict[str, object]:
    """One image, what it is and what becomes of it, as JSON tells it."""
    return {
        "part": name,
        "format": fact.probe.format.value,
        "bytes": fact.byte_count,
        "digest": fact.placement.hex(),
        "original": [plan.original.width, plan.original.height],
        "target": [plan.target.width, plan.target.height],
        "changes": [change.value for change in plan.changes],
        "untouched": plan.untouched,
        "tokens_original": plan.before.tokens,
        "tokens": plan.after.tokens,
        "grid": list(plan.after.grid),
        "position_advance": plan.after.position_advance,
    }


def _cost(
    world: World, served: ServedModel, backend: BackendName, estimate: TokenEstimate, plans: Sequence[ImagePlan]
) -> dict[str, object]:
    """KV bytes, and milliseconds on the chosen backend where the model's compute is known; uncached, unqueued."""
    checkpoint, pace = served.checkpoint, world.book.pace_on(served, backend)
    told: dict[str, object] = {"is_calibrated": pace.samples > 0}
    kv_bytes = kv_bytes_held(served, estimate.prompt_tokens, estimate)
    if kv_bytes is not None:
        told["kv_bytes"] = kv_bytes
    if checkpoint.decoder is not None:
        told["prefill_ms"] = round(pace.prefill_ms(prefill_flops(checkpoint.decoder, estimate.prompt_tokens)), 2)
    if checkpoint.encoder is not None:
        flops = sum(encoder_flops(checkpoint.encoder, plan.after.vit_patches) for plan in plans)
        told["encode_ms"] = round(pace.encode_ms(flops), 2)
    return told


def told_estimate(estimate: TokenEstimate) -> dict[str, object]:
    """A request's tokens as JSON tells them."""
    return {
        "text_tokens": estimate.text_tokens,
        "image_tokens": estimate.image_tokens,
        "image_overhead_tokens": estimate.image_overhead_tokens,
        "video_tokens": estimate.video_tokens,
        "prompt_tokens": estimate.prompt_tokens,
        "prompt_lower_bound": estimate.prompt_lower_bound,
        "output_tokens": estimate.output_tokens,
        "kv_tokens": estimate.kv_tokens,
        "exact": estimate.exact,
    }
