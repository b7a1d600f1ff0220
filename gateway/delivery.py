"""From a reserved request to its settlement: stages 10 to 15, and the only file that knows how they repeat.

    10 decide    which backend, and its account        13 forward   elsewhere only what was certainly not taken
    11 prepare   pixels, unless the cache has them     14 relay     after the first byte errors are stream errors
    12 splice    the new body                          15 settle    estimate against usage

Decided here: when a request goes elsewhere, and what is released when. Not decided here: which backend (``routing``),
what was certainly not taken (``upstream``), what is written into the body (``outgoing``). Awaits nothing but ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway.errors import BackendUnreachable, NoBackend, NotTaken
from gateway.ports import Account, PrepareJob, SourceRef, UpstreamRequest, UpstreamResponse
from gateway.quota.claim import Used
from gateway.routing.ask import Decision
from gateway.routing.decide import decide
from gateway.splice.edit import Operation, edit, splice
from gateway.stages import exchange as frame
from gateway.stages import legs
from gateway.stages.answer import editor_for, told_coordinates
from gateway.stages.asking import Content, ask_of
from gateway.stages.bytes_once import Courier
from gateway.stages.counting import answer_count, counts_itself
from gateway.stages.elsewhere import go_on, seek_on
from gateway.stages.following import keeper_of, learn_response
from gateway.stages.identities import Marks, image_ids
from gateway.stages.observing import cost_there, observe
from gateway.stages.outgoing import edits_of, forward_headers, response_headers
from gateway.stages.planning import check_images, check_text, cost_of, learn_pace
from gateway.stages.prefixes import with_blocks
from gateway.stages.pump import pump
from gateway.stages.stream_usage import stripper_for
from gateway.stages.trip import Trip
from gateway.types import BackendRole, BackendView, EngineKind, Prepared


async def deliver(trip: Trip) -> None:
    """Take a reserved request to its backend and the answer to the client; a count may be answered here."""
    try:
        await _send(trip)
    except (NoBackend, BackendUnreachable):
        if not counts_itself(trip):
            raise
        await answer_count(trip)


async def _send(trip: Trip) -> None:
    """Decide, prepare, splice, forward, relay; again elsewhere while a backend certainly did not take the request."""
    x, ports, record = trip.x, trip.x.ports, trip.x.record
    facts = trip.facts
    cost = cost_of(trip.estimate, trip.plans, trip.clips.patches)
    content = Content(trip.skeleton.tree, trip.body.view, trip.call, facts, trip.plans, trip.clips)
    views = ports.upstream.views()  # as they are now: looking at images and waiting for budget took their time
    ask = ask_of(
        trip.policy,
        trip.served,
        content,
        trip.estimate,
        cost,
        views,
        request_id=record.request_id,
        path=x.client.head.path,
    )
    keeper = keeper_of(ports.responses, trip.call.continues, trip.policy.tenant, "previous_response_id")
    seeks = trip.call.continues is not None and keeper is None
    if keeper is not None:
        ask = replace(ask, keeper=keeper)
    courier = _courier(trip)
    ask = await with_blocks(ask, trip, courier.ids)
    views = ports.upstream.views()  # a backend may have left meanwhile
    prepared: dict[int, Prepared] = {}
    while True:
        decision = decide(views, ask, ports.upstream.holdings(ask.key), x.world.routing)
        view = next(view for view in views if view.name == decision.backend)
        frame.note_decision(record, decision, view)
        account = ports.upstream.open_account(decision.backend, cost_there(cost, decision, streams=trip.call.stream))
        try:
            # Known from here on, so that requests with the same picture at the same moment follow this one.
            ports.upstream.learn(decision.backend, ask.key)
            x.watch.lap("decide")
            try:
                response = await _forward(trip, courier, view, prepared)
            except NotTaken as refusal:
                ask, answer = go_on(refusal, decision.backend, ask, ports.upstream, record)
                if answer is None:
                    views = ports.upstream.views()
                    continue
                response = answer
            try:
                x.watch.lap("forward")
                further = seek_on(ask, ports.upstream, view.name, response.status, record) if seeks else None
                if further is not None:
                    ask, views = further, ports.upstream.views()
                    continue
                if counts_itself(trip, response):
                    await answer_count(trip)
                    return
                tail = await _relay(trip, decision, response, account)
                _settle(trip, view, response, tail)
                observe(ports.upstream, decision, record)
                if x.dialect.keeps_responses and response.status == 200:
                    learn_response(ports.responses, tail, decision.backend, trip.policy.tenant)
            finally:
                response.close()
            return
        finally:
            account.close()


def _courier(trip: Trip) -> Courier:
    x = trip.x
    ids = image_ids(x.world.identify, trip.policy, trip.call, trip.facts, trip.plans)
    return Courier(x.ports.sent_ids, trip.policy, ids, trip.facts, trip.plans, x.record)


async def _forward(trip: Trip, courier: Courier, view: BackendView, prepared: dict[int, Prepared]) -> UpstreamResponse:
    """Prepare, splice and send, at once or in legs. Raises what ``Upstream.forward`` raises, and NoBackend."""
    x, marks = trip.x, courier.marks(view)
    if view.priorities:
        marks = replace(marks, priorities=True)
    whole = replace(marks, withheld=frozenset()) if marks.withheld else marks
    if x.ports.legs is not None and view.role is not BackendRole.FULL:
        operations = await _operations(trip, prepared, whole)
        x.record.attempts += 1
        return await legs.send(trip, x.ports.legs, view, operations, prepared, partial(_spliced, trip))
    request = await request_of(trip, prepared, marks)
    x.record.attempts += 1
    x.record.forwarded_s = x.ports.clock.now_s()
    return await courier.forward(
        x.ports.upstream, view, marks, request, partial(request_of, trip, prepared, whole, "forward")
    )


async def _prepare(trip: Trip, prepared: dict[int, Prepared], marks: Marks) -> None:
    """Fill in the prepared bytes of every image that changes, by its place, but for those that go as their ids."""
    wants_sha256 = marks.engine is EngineKind.SGLANG and any(part.takes_id for part in trip.call.images)
    changing = {
        place: PrepareJob(SourceRef(part.name, part.source), fact, plan, wants_sha256)
        for place, (part, fact, plan) in enumerate(zip(trip.call.images, trip.facts, trip.plans, strict=False))
        if not plan.untouched and place not in marks.withheld and place not in prepared and not trip.policy.shadow
    }
    if not changing or trip.looked is None:
        return
    results = await trip.x.ports.media.prepare(trip.body, trip.looked, list(changing.values()), trip.scope)
    frame.note_prepared(trip.x.record, results)
    prepared.update((place, result.prepared) for place, result in zip(changing, results, strict=True))
    if not marks.withheld:
        trip.looked.drop_files()


async def request_of(
    trip: Trip, prepared: dict[int, Prepared], marks: Marks, before: str | None = None
) -> UpstreamRequest:
    """The request as it goes out. ``before``: the stage that was interrupted for it."""
    if before is not None:
        trip.x.watch.lap(before)
    request = _spliced(trip, await _operations(trip, prepared, marks))
    trip.x.watch.lap("splice")
    return request


async def _operations(trip: Trip, prepared: dict[int, Prepared], marks: Marks) -> Sequence[Operation]:
    """Everything that is changed in the body, once what changes is made."""
    x = trip.x
    await _prepare(trip, prepared, marks)
    written = await trip.clips.prepare(trip.body, x.ports.clips, x.world)
    x.watch.lap("prepare")
    operations: Sequence[Operation] = ()
    if not trip.policy.shadow:
        images = [(trip.call.images[place], image) for place, image in prepared.items()]
        operations = [*edits_of(trip.call, trip.policy, marks, images, x.world.cache_salt, x.record), *written]
    return operations


def _spliced(trip: Trip, operations: Sequence[Operation]) -> UpstreamRequest:
    """Untouched bytes as views of the body, changed parts spliced in."""
    x, body = trip.x, trip.body
    spliced = splice(body.view, body.start, body.stop, edit(trip.skeleton, operations))
    x.record.forwarded_bytes = spliced.byte_count
    head = x.client.head
    return UpstreamRequest(
        head.method,
        head.path,
        head.query,
        forward_headers(
            head, keep_authorization=not x.world.has_tenants, readable=trip.wish is not None or trip.call.hides_usage
        ),
        spliced.chunks,
        spliced.byte_count,
        trip.facts[0].placement.hex() if trip.facts else "",
        cost_of(trip.estimate, trip.plans, trip.clips.patches),
    )


async def _relay(trip: Trip, decision: Decision, response: UpstreamResponse, account: Account) -> bytes:
    """Bytes as they come, with the tail kept for usage. A refusal inside a stream that has begun becomes its error."""
    x, client, record = trip.x, trip.x.client, trip.x.record
    if trip.looked is not None:
        trip.looked.drop_files()
    if client.started:
        frame.check_continues(response)
    else:
        record.status = response.status
    editor = editor_for(trip.wish, x.dialect, response.status, response.headers)
    record.coordinates = told_coordinates(trip.wish, editor)
    stripper = stripper_for(trip.call, response.status, response.headers)
    headers = response_headers(record, decision, response.headers)
    record.first_byte_s = x.ports.clock.now_s()
    editors = [each for each in (stripper, editor) if each is not None]
    await client.start(response.status, headers, None if editors else response.content_length)
    tail = await pump(client, response, editors, record, x.ports.clock, account.answered)
    x.watch.lap("relay")
    return tail


def _settle(trip: Trip, view: BackendView, response: UpstreamResponse, tail: bytes) -> None:
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
        if trip.call.is_chat and not trip.call.other_media:
            learn_pace(x.world.book, trip.served, view, trip.plans, record)
        is_ours = _is_counted_whole(trip)
        if usage.image_tokens is not None and trip.plans and is_ours:
            check_images(x.world.book, trip.served, view, trip.plans, usage.image_tokens, record)
        if is_ours and usage.image_tokens in (None, estimate.image_tokens):
            text_tokens = usage.prompt_tokens - estimate.image_tokens - estimate.image_overhead_tokens
            x.world.book.learn_text(trip.served, trip.call.text_bytes, trip.call.message_count, text_tokens)
    x.watch.lap("settle")


def _is_counted_whole(trip: Trip) -> bool:
    """Whether the engine counted what we did: not what it had kept too, other media, or under the client's settings."""
    call = trip.call
    if call.is_continued or call.other_media or not call.is_chat:
        return False
    if trip.policy.engine_fields.allows_any(call.foreign_fields):
        return False
    return len(trip.plans) == len(call.images)
