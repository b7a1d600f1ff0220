"""One request from its first byte to its settlement: the only file that knows the order of the stages.

    1 accept    who asks                                     8 check     pixels, tokens, context, as measured
    2 read      body -> skeleton -> call                     9 reserve   the tenant's budgets
    3 resolve   tenant x task x model -> policy             10 decide    which backend, and its account
    4 check     counts and sizes, as declared               11 prepare   pixels, unless the cache has them
    5 fetch     facts of every image                        12 splice    the new body
    6 plan      header -> target size, or untouched         13 forward   elsewhere only what was certainly not taken
    7 estimate  text, image and output tokens               14 relay     after the first byte errors are stream errors
                                                            15 settle    estimate against usage

Decided here: the order, and what is released when. Not decided here: anything a stage decides. The journey awaits
nothing but ports and uses no loop and no clock of its own, so a test can drive it by hand and strike at every await.
Every acquisition (body, looked-at media, reservation, account, upstream response) has one owner and one ``finally``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway import exchange as frame
from gateway.answer import Wish, editor_for, told_coordinates, wish_of
from gateway.claiming import claim_of
from gateway.clips import ClipWork
from gateway.dialects import Dialect
from gateway.errors import (
    BackendUnreachable,
    GatewayError,
    ModelNotFound,
    NoBackend,
    NotTaken,
    TooComplex,
)
from gateway.exchange import Ports, Watch, World, conclude, new_record
from gateway.frames import spread
from gateway.measuring import Planned, judge
from gateway.models.book import ServedModel
from gateway.omission import as_enforced, within_count
from gateway.outgoing import edits_of, forward_headers, response_headers
from gateway.planning import (
    check_images,
    check_text,
    cost_of,
    count_prompt,
    estimate_request,
    learn_pace,
    media_scope,
    plan_kept,
    served_model,
)
from gateway.policy.check import check_declared
from gateway.policy.effective import EffectivePolicy, FieldAction
from gateway.ports import (
    Body,
    Client,
    Looked,
    MediaScope,
    PrepareJob,
    PromptCount,
    Reservation,
    SourceRef,
    UpstreamRequest,
    UpstreamResponse,
)
from gateway.pump import pump
from gateway.quota.claim import Used
from gateway.record import ExchangeRecord
from gateway.routing.ask import Decision, RouteAsk
from gateway.routing.decide import decide
from gateway.splice.edit import Operation, edit, splice
from gateway.splice.skeleton import Skeleton, cut
from gateway.types import (
    BackendView,
    Call,
    EngineKind,
    ImagePart,
    ImagePlan,
    Prepared,
    SourceFacts,
    TokenEstimate,
)


@dataclass(slots=True)
class _Exchange:
    """What the stages of one exchange hand on."""

    client: Client
    dialect: Dialect
    ports: Ports
    world: World
    record: ExchangeRecord
    watch: Watch


async def travel(client: Client, dialect: Dialect, ports: Ports, world: World) -> None:
    """Take one chat request through all stages. Raises only what is not an error of the exchange (cancellation)."""
    record = new_record(client, dialect.name, ports.clock)
    exchange = _Exchange(client, dialect, ports, world, record, Watch(ports.clock, record))
    await conclude(client, ports, record, _stages(exchange))


async def _stages(x: _Exchange) -> None:  # noqa: PLR0915  # one statement per step: this is the table of contents
    record, watch, ports, client = x.record, x.watch, x.ports, x.client
    caller = x.world.admit(client.head)
    frame.note_caller(record, caller)
    watch.lap("accept")
    body = await client.read(x.world.max_body_bytes)
    try:
        record.request_bytes = body.stop - body.start
        skeleton = await _cut(body, ports)
        call = x.dialect.read(skeleton.tree)
        frame.note_call(record, call)
        watch.lap("read")
        policy = frame.policy_for(x.world, caller, client.head, call)
        frame.note_policy(record, policy)
        views = ports.upstream.views()
        served = served_model(x.world.book, policy, views)
        frame.note_served(record, served)
        watch.lap("resolve")
        call = within_count(policy, call, skeleton.tree)
        record.findings += [error.finding for error in check_declared(policy, as_enforced(policy, call))]
        watch.lap("check")
        scope = media_scope(policy, x.world)
        looked = await _look(x, policy, body, call, scope)
        clips = ClipWork(policy, served, call, views)
        try:
            if call.other_media:
                await clips.look(body, ports.clips, x.world, record.findings)
                clips.note(record)
                watch.lap("fetch")
            call, facts = spread(policy, call, () if looked is None else looked.facts)
            served = x.world.book.beside_text(served, call.text_bytes, call.message_count)
            kept = await plan_kept(policy, served, call, facts, ports, skeleton.tree)
            call, facts, plans = kept.call, kept.facts, kept.plans
            record.images_omitted = len(call.omitted)
            frame.note_plans(record, facts, plans)
            wish = wish_of(policy, client.head, served, call, plans)
            watch.lap("plan")
            counted = await count_prompt(x.world, served, x.dialect.name, body, skeleton.tree, call)
            estimate = estimate_request(x.world.book, served, policy, call, plans, counted, video_tokens=clips.tokens)
            record.estimate = estimate
            watch.lap("estimate")
            judged = await judge(
                x.world,
                ports,
                policy,
                served,
                Planned(call, facts, plans, estimate, counted, clips.measured, clips.tokens),
            )
            record.findings += judged.findings
            record.shadow_image_tokens, record.shadow_changes = judged.shadow_image_tokens, judged.shadow_changes
            watch.lap("check")
            reservation = await ports.budgets.reserve(claim_of(policy, served, call, estimate, plans, views))
            try:
                frame.note_reservation(record, reservation)
                watch.lap("reserve")
                trip = _Trip(
                    x,
                    body,
                    skeleton,
                    call,
                    policy,
                    served,
                    scope,
                    looked,
                    facts,
                    plans,
                    estimate,
                    counted,
                    wish,
                    clips,
                    reservation,
                )
                if x.world.keepalive_comment_s is not None and call.stream:
                    client.keep_alive(x.world.keepalive_comment_s)
                await _deliver(trip)
            finally:
                reservation.release()
        finally:
            clips.close()
            if looked is not None:
                looked.close()
    finally:
        body.close()


@dataclass(slots=True)
class _Trip:
    """All that is known of a request once it may go to a backend."""

    x: _Exchange
    body: Body
    skeleton: Skeleton
    call: Call
    policy: EffectivePolicy
    served: ServedModel
    scope: MediaScope
    looked: Looked | None
    facts: Sequence[SourceFacts]
    plans: Sequence[ImagePlan]
    estimate: TokenEstimate
    counted: PromptCount | None
    wish: Wish | None
    clips: ClipWork
    reservation: Reservation


async def _cut(body: Body, ports: Ports) -> Skeleton:
    try:
        return cut(body.buffer, body.start, body.stop)
    except TooComplex:
        return await ports.cut_elsewhere(body)


async def _look(x: _Exchange, policy: EffectivePolicy, body: Body, call: Call, scope: MediaScope) -> Looked | None:
    """Facts of every image; ``None`` without images, and in shadow mode where an image cannot be looked at."""
    if not call.images:
        x.watch.lap("fetch")
        return None
    try:
        refs = [SourceRef(part.name, part.source) for part in call.images]
        looked = await x.ports.media.look(body, refs, scope)
    except GatewayError as error:
        if not policy.shadow:
            raise
        x.record.findings.append(error.finding)
        return None
    finally:
        x.watch.lap("fetch")
    frame.note_facts(x.record, looked.facts, looked.cache_hits)
    return looked


async def _deliver(trip: _Trip) -> None:
    """Decide, prepare, splice, forward, relay; again elsewhere while a backend certainly did not take the request."""
    x, ports, record = trip.x, trip.x.ports, trip.x.record
    facts = trip.facts
    cost = cost_of(trip.estimate, trip.plans, trip.clips.patches)
    ask = RouteAsk(
        model=trip.policy.model,
        images=(*(fact.placement for fact in facts), *trip.clips.placements),
        image_patches=cost.encode_patches,
        prompt_tokens=cost.prompt_tokens,
        kv_tokens=cost.kv_tokens,
        needs_vision=bool(trip.call.images) or trip.clips.has_video,
        needs_frames=trip.clips.needs_frames,
        videos=len(trip.clips.placements),
        request_id=record.request_id,
    )
    prepared: Sequence[tuple[ImagePart, Prepared]] | None = None
    written: Sequence[Operation] = ()
    while True:
        views = ports.upstream.views()  # as they are now: looking at images and waiting for budget took their time
        decision = decide(views, ask, ports.upstream.held_images)
        view = next(view for view in views if view.name == decision.backend)
        frame.note_decision(record, decision, view)
        account = ports.upstream.open_account(decision.backend, cost)
        try:
            # Known from here on, so that requests with the same picture at the same moment follow this one.
            ports.upstream.learn_images(decision.backend, ask.images)
            x.watch.lap("decide")
            if prepared is None:
                prepared = await _prepare(trip, facts)
                written = await trip.clips.prepare(trip.body, ports.clips, x.world)
                x.watch.lap("prepare")
            request = _request(trip, prepared, written, view.engine)
            x.watch.lap("splice")
            record.attempts += 1
            try:
                response: UpstreamResponse = await ports.upstream.forward(decision.backend, request)
            except NotTaken as refusal:
                answer = frame.refused_answer(refusal)
                record.retry_reasons.append(refusal.reason)
                ask = replace(ask, excluded=ask.excluded | {decision.backend})
                if _can_go_elsewhere(ports.upstream.views(), ask) and ports.upstream.may_retry():
                    if answer is not None:
                        answer.close()
                    continue
                if answer is None:
                    raise BackendUnreachable(detail=refusal.detail, retry_after_s=1.0) from refusal
                response = answer
            try:
                x.watch.lap("forward")
                account.answered()
                tail = await _relay(trip, decision, response)
                _settle(trip, view, response, tail)
            finally:
                response.close()
            return
        finally:
            account.close()


def _can_go_elsewhere(views: Sequence[BackendView], ask: RouteAsk) -> bool:
    try:
        decide(views, ask, lambda _backend, _images: 0)
    except (NoBackend, ModelNotFound):
        return False
    return True


async def _prepare(trip: _Trip, facts: Sequence[SourceFacts]) -> Sequence[tuple[ImagePart, Prepared]]:
    """Prepared bytes of every image that changes, by its part."""
    call, record = trip.call, trip.x.record
    changing = [
        (part, PrepareJob(SourceRef(part.name, part.source), fact, plan))
        for part, fact, plan in zip(call.images, facts, trip.plans, strict=False)
        if not plan.untouched and not trip.policy.shadow
    ]
    if not changing or trip.looked is None:
        return ()
    results = await trip.x.ports.media.prepare(trip.body, trip.looked, [job for _, job in changing], trip.scope)
    frame.note_prepared(record, results)
    return [(part, result.prepared) for (part, _), result in zip(changing, results, strict=True)]


def _request(
    trip: _Trip, prepared: Sequence[tuple[ImagePart, Prepared]], written: Sequence[Operation], engine: EngineKind
) -> UpstreamRequest:
    """The request as it goes out: untouched bytes as views of the body, changed parts spliced in."""
    x, body = trip.x, trip.body
    operations = (
        ()
        if trip.policy.shadow
        else [*edits_of(trip.call, trip.policy, engine, prepared, x.world.cache_salt, x.record), *written]
    )
    spliced = splice(body.view, body.start, body.stop, edit(trip.skeleton, operations))
    x.record.forwarded_bytes = spliced.byte_count
    head = x.client.head
    return UpstreamRequest(
        head.method,
        head.path,
        head.query,
        forward_headers(head, keep_authorization=not x.world.has_tenants, readable=trip.wish is not None),
        spliced.chunks,
        spliced.byte_count,
    )


async def _relay(trip: _Trip, decision: Decision, response: UpstreamResponse) -> bytes:
    """Bytes as they come, with the tail kept for usage. A refusal inside a stream that has begun becomes its error."""
    x, client, record = trip.x, trip.x.client, trip.x.record
    if client.started:
        frame.check_continues(response)
    else:
        record.status = response.status
    editor = editor_for(trip.wish, x.dialect, response.status, response.headers)
    record.coordinates = told_coordinates(trip.wish, editor)
    headers = response_headers(record, decision, response.headers)
    record.first_byte_s = x.ports.clock.now_s()
    await client.start(response.status, headers, response.content_length if editor is None else None)
    tail = await pump(client, response, editor, record, x.ports.clock)
    x.watch.lap("relay")
    return tail


def _settle(trip: _Trip, view: BackendView, response: UpstreamResponse, tail: bytes) -> None:
    """Compare the estimate with what the engine says and give the budget back; never fails the request."""
    x, record, estimate = trip.x, trip.x.record, trip.estimate
    if response.status >= 400:
        record.outcome = "backend_refused"
    else:
        record.usage = x.dialect.usage(tail, streamed=trip.call.stream)
    usage = record.usage
    trip.clips.settle(usage, record)
    if usage is None:
        trip.reservation.settle(None)
    else:
        trip.reservation.settle(Used(usage.prompt_tokens, usage.completion_tokens, usage.image_tokens))
        record.text_agrees = check_text(x.world.book, trip.served, trip.counted, trip.plans, usage)
        if not trip.call.other_media:
            learn_pace(x.world.book, trip.served, view, trip.plans, record)
        is_ours = _is_counted_whole(trip)
        if usage.image_tokens is not None and trip.plans and is_ours:
            check_images(x.world.book, trip.served, view, trip.plans, usage.image_tokens, record)
        if is_ours and usage.image_tokens in (None, estimate.image_tokens):
            text_tokens = usage.prompt_tokens - estimate.image_tokens - estimate.image_overhead_tokens
            x.world.book.learn_text(trip.served, trip.call.text_bytes, trip.call.message_count, text_tokens)
    x.watch.lap("settle")


def _is_counted_whole(trip: _Trip) -> bool:
    """Whether the engine counted what we did: not what it had kept too, other media, or under the client's settings."""
    call, actions = trip.call, trip.policy.engine_fields
    if call.is_continued or call.other_media:
        return False
    if any(actions.action(str(pointer[-1])) is FieldAction.ALLOW for pointer in call.foreign_fields):
        return False
    return len(trip.plans) == len(call.images)
