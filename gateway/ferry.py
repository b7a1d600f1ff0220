"""The short way: inference requests whose bodies we do not read go to a backend as they come, both ways streamed.

Decided here: accept, reserve, decide, forward, relay, and nothing else: no policy looks inside, of limits only those
on requests hold (a rate, how many are in flight), nothing is buffered. Without the body the model is not known, so any
healthy backend that has the path may be chosen; only of a form the first fields are looked at (`form`). A response
asked for by its id is asked of its keeper, and of one backend after the other where nobody knows that. Else only a
connect failure is sent elsewhere, since afterwards the client's bytes are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.dialects import engines_of
from gateway.errors import BodyTooLarge, NotTaken, ResponseNotFound
from gateway.policy.effective import EffectivePolicy
from gateway.policy.keys import Caller
from gateway.policy.resolve import resolve
from gateway.ports import Client, Reservation, UpstreamRequest, UpstreamResponse
from gateway.record import ExchangeRecord
from gateway.routing.ask import Decision, RouteAsk
from gateway.routing.decide import decide
from gateway.stages import exchange as frame
from gateway.stages.claiming import claim_unread
from gateway.stages.elsewhere import go_on, seek_on
from gateway.stages.exchange import Ports, Watch, World, conclude, new_record, note_caller
from gateway.stages.following import id_in, keeper_of
from gateway.stages.form import Form, is_form
from gateway.stages.outgoing import forward_headers, response_headers
from gateway.types import BackendView, RequestCost
from gateway.types.paths import ANYWHERE, Lane

NO_COST = RequestCost(0, 0, 0)


async def ferry(client: Client, name: str, ports: Ports, world: World, lane: Lane = ANYWHERE) -> None:
    """Take one request through, by ``lane``. ``name`` labels it in metrics."""
    record = new_record(client, name, ports.clock)
    await conclude(client, ports, record, _stages(client, ports, world, record, lane))


def ask_on(lane: Lane, views: Sequence[BackendView], request_id: str) -> RouteAsk:
    """What routing is asked of a request that nobody reads: a backend of its lane."""
    others = (view.name for view in views if lane.backends and view.name not in lane.backends)
    return RouteAsk(model=lane.model, request_id=request_id, excluded=frozenset(others))


async def _stages(client: Client, ports: Ports, world: World, record: ExchangeRecord, lane: Lane) -> None:
    watch = Watch(ports.clock, record)
    head = client.head
    caller = world.admit(head)
    note_caller(record, caller)
    limit_bytes = world.max_body_bytes if lane.max_body_bytes is None else lane.max_body_bytes
    if head.content_length is not None and head.content_length > limit_bytes:
        raise BodyTooLarge(f"The body is larger than the gateway accepts ({limit_bytes} bytes).", rule="max_body_bytes")
    watch.lap("accept")
    form = await Form.of(client) if is_form(head) else None
    policy = unread_policy(world, caller, form)
    reservation = await reserve_unread(ports, policy, record)
    try:
        if reservation is not None:
            watch.lap("reserve")
        lane = replace(lane, max_body_bytes=limit_bytes)
        carried = client if form is None else form
        await _carry(carried, ports, world, record, watch, policy=policy, lane=lane)
    finally:
        if reservation is not None:
            reservation.release()


def unread_policy(world: World, caller: Caller, form: Form | None = None) -> EffectivePolicy:
    """The tenant's policy for the model that a form names. Raises ModelNotFound for one that is not there for it."""
    model = None if form is None else form.model
    policy = resolve(
        world.policies,
        tenant=caller.tenant,
        header_task=None,
        model=model,
        body_task=None,
        key_task=caller.task,
        needs_model=form is not None,
    )
    if form is not None and policy.model is not None and policy.model != model:
        form.rename(policy.model)
    return policy


async def reserve_unread(ports: Ports, policy: EffectivePolicy, record: ExchangeRecord) -> Reservation | None:
    """The tenant's limits on requests, whatever they ask for; ``None`` where it has none."""
    claim = claim_unread(policy)
    if claim is None:
        return None
    record.shadow = policy.shadow
    reservation = await ports.budgets.reserve(claim)
    frame.note_reservation(record, reservation)
    return reservation


async def _carry(
    client: Client,
    ports: Ports,
    world: World,
    record: ExchangeRecord,
    watch: Watch,
    *,
    policy: EffectivePolicy,
    lane: Lane,
) -> None:
    head = client.head
    headers = forward_headers(head, keep_authorization=not world.has_tenants)
    request = UpstreamRequest(head.method, head.path, head.query, headers, (), head.content_length or 0)
    response_id = id_in(head.path)
    keeper = keeper_of(ports.responses, response_id, policy.tenant, "response_id")
    seeks = response_id is not None and keeper is None
    model = policy.model if lane.model is None else lane.model
    ask = ask_on(lane, ports.upstream.views(), record.request_id)
    ask = replace(ask, model=model, engines=engines_of(head.path), keeper=keeper)
    record.model = model
    limit_bytes = world.max_body_bytes if lane.max_body_bytes is None else lane.max_body_bytes
    while True:
        views = ports.upstream.views()
        decision = decide(views, ask, ports.upstream.holdings(ask.key), world.routing)
        view = next(view for view in views if view.name == decision.backend)
        frame.note_decision(record, decision, view)
        account = ports.upstream.open_account(decision.backend, NO_COST)
        try:
            watch.lap("decide")
            record.attempts += 1
            try:
                response = await ports.upstream.stream(decision.backend, request, client, limit_bytes)
            except NotTaken as refusal:
                ask, answer = go_on(
                    refusal, decision.backend, ask, ports.upstream, record, is_whole=refusal.reason == "connect"
                )
                if answer is None:
                    continue
                response = answer
            watch.lap("forward")
            try:
                status, there = response.status, decision.backend
                further = seek_on(ask, ports.upstream, there, status, record) if seeks else None
                if further is not None:
                    ask = further
                    continue
                if seeks and response.status == 404:
                    raise ResponseNotFound(part="response_id")
                await _relay(client, ports, record, decision, response)
                watch.lap("relay")
            finally:
                response.close()
            return
        finally:
            account.close()


async def _relay(
    client: Client, ports: Ports, record: ExchangeRecord, decision: Decision, response: UpstreamResponse
) -> None:
    record.status = response.status
    if response.status >= 400:
        record.outcome = "backend_refused"
    record.first_byte_s = ports.clock.now_s()
    headers = response_headers(record, decision, response.headers)
    await client.start(response.status, headers, response.content_length)
    while chunk := await response.chunk():
        record.response_bytes += len(chunk)
        await client.write(chunk)
    await client.finish()
