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

from gateway.delivery import deliver
from gateway.dialects import Dialect
from gateway.errors import GatewayError, TooComplex
from gateway.policy.check import check_declared
from gateway.policy.effective import EffectivePolicy
from gateway.ports import Body, Client, Looked, MediaScope, SourceRef
from gateway.splice.skeleton import Skeleton, cut
from gateway.stages import exchange as frame
from gateway.stages.answer import wish_of
from gateway.stages.claiming import claim_of
from gateway.stages.clips import ClipWork
from gateway.stages.defaulting import with_parameters
from gateway.stages.exchange import Ports, Watch, World, conclude, new_record
from gateway.stages.frames import spread
from gateway.stages.measuring import Planned, judge
from gateway.stages.omission import as_enforced, within_count
from gateway.stages.planning import count_prompt, estimate_request, media_scope, plan_kept
from gateway.stages.serving import served_model
from gateway.stages.stream_usage import with_usage
from gateway.stages.trip import Exchange, Trip
from gateway.types import Call


async def travel(client: Client, dialect: Dialect, ports: Ports, world: World) -> None:
    """Take one chat request through all stages. Raises only what is not an error of the exchange (cancellation)."""
    record = new_record(client, dialect.name, ports.clock)
    exchange = Exchange(client, dialect, ports, world, record, Watch(ports.clock, record))
    await conclude(client, ports, record, stages_of(exchange))


async def stages_of(x: Exchange) -> None:  # noqa: PLR0915  # one statement per step: this is the table of contents
    """All stages of one exchange, in their order. Raises what any of them refuses."""
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
        policy = frame.policy_for(x.world, caller, client.head, call, skeleton.tree)
        frame.note_policy(record, policy)
        call = with_usage(policy, x.dialect.name, with_parameters(policy, call, skeleton.tree), skeleton.tree)
        views = ports.upstream.views()
        served = served_model(x.world.book, policy, views, client.head.path)
        frame.note_served(record, served)
        watch.lap("resolve")
        call = within_count(policy, call, skeleton.tree)
        record.findings += [error.finding for error in check_declared(policy, as_enforced(policy, call))]
        watch.lap("check")
        scope = media_scope(policy, x.world)
        clips = ClipWork(policy, served, call, views)
        looked = await _look(x, policy, body, call, scope)
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
            planned = Planned(call, facts, plans, estimate, counted, clips.measured, clips.tokens)
            judged = await judge(x.world, ports, policy, served, planned)
            record.findings += judged.findings
            record.shadow_image_tokens, record.shadow_changes = judged.shadow_image_tokens, judged.shadow_changes
            watch.lap("check")
            reservation = await ports.budgets.reserve(claim_of(policy, served, call, estimate, plans, views))
            try:
                frame.note_reservation(record, reservation)
                watch.lap("reserve")
                trip = Trip(
                    x=x,
                    body=body,
                    skeleton=skeleton,
                    call=call,
                    policy=policy,
                    served=served,
                    scope=scope,
                    looked=looked,
                    facts=facts,
                    plans=plans,
                    estimate=estimate,
                    counted=counted,
                    wish=wish,
                    clips=clips,
                    reservation=reservation,
                )
                if x.finish is not None:
                    await x.finish(trip)
                    return
                if x.world.keepalive_comment_s is not None and call.stream:
                    client.keep_alive(x.world.keepalive_comment_s)
                await deliver(trip)
            finally:
                reservation.release()
        finally:
            clips.close()
            if looked is not None:
                looked.close()
    finally:
        body.close()


async def _cut(body: Body, ports: Ports) -> Skeleton:
    try:
        return cut(body.buffer, body.start, body.stop)
    except TooComplex:
        return await ports.cut_elsewhere(body)


async def _look(x: Exchange, policy: EffectivePolicy, body: Body, call: Call, scope: MediaScope) -> Looked | None:
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
    frame.note_facts(x.record, looked.facts)
    return looked
