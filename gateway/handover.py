"""``POST /v1/prepare``: a request made ready and given back, for callers that send to engines themselves.

Decided here: what the answer holds: the decision, every image's plan and identity, the tokens, and the body as it would
go to the chosen backend (or only the images made). Nothing is sent, so nothing is learnt of any backend. Not decided
here: any stage; they are the journey's, and so are its refusals, its limits and its charges: what is prepared is
charged as it is estimated, for nobody tells what became of it.

The path whose body it is is told as to ``explain``. ``?only=images`` leaves the body out and gives the images that
changed as data URLs, in the order of the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import parse_qs

from gateway.delivery import request_of
from gateway.dialects import Dialect
from gateway.errors import InvalidRequest
from gateway.explain import told_estimate, told_image
from gateway.journey import stages_of
from gateway.ports import Client
from gateway.routing.decide import decide
from gateway.stages.asking import Content, ask_of
from gateway.stages.exchange import Ports, Watch, World, conclude, new_record
from gateway.stages.identities import Marks, image_ids
from gateway.stages.planning import cost_of
from gateway.stages.trip import Exchange, Trip
from gateway.types import Prepared

PATH = "/v1/prepare"
_ONLY = ("body", "images")


async def answer_prepared(client: Client, dialect: Dialect, ports: Ports, world: World) -> None:
    """Take a request as far as its splice and answer with what came of it. ``client.head`` names the dialect's path."""
    record = new_record(client, "estimate", ports.clock)
    exchange = Exchange(client, dialect, ports, world, record, Watch(ports.clock, record), finish=hand_over)
    await conclude(client, ports, record, stages_of(exchange))


async def hand_over(trip: Trip) -> None:
    """Decide, prepare, splice, and answer. Raises NoBackend and what preparing raises."""
    x, ports = trip.x, trip.x.ports
    only = parse_qs(x.client.head.query).get("only", ["body"])[-1]
    if only not in _ONLY:
        raise InvalidRequest(f"The query's `only` must be one of: {', '.join(_ONLY)}.", part="only")
    cost = cost_of(trip.estimate, trip.plans, trip.clips.patches)
    head = x.client.head
    content = Content(trip.skeleton.tree, trip.body.view, trip.call, trip.facts, trip.plans, trip.clips)
    views = ports.upstream.views()
    ask = ask_of(
        trip.policy, trip.served, content, trip.estimate, cost, views, request_id=head.request_id, path=head.path
    )
    decision = decide(views, ask, ports.upstream.holdings(ask.key), x.world.routing)
    view = next(view for view in views if view.name == decision.backend)
    marks = Marks(view.engine, image_ids(x.world.identify, trip.policy, trip.call, trip.facts, trip.plans))
    x.watch.lap("decide")
    prepared: dict[int, Prepared] = {}
    request = await request_of(trip, prepared, marks)
    told: dict[str, object] = {
        "backend": {
            "name": decision.backend,
            "engine": view.engine.value,
            "reason": decision.reason,
            "known_images": decision.known_images,
        },
        "policy": {
            "tenant": trip.policy.tenant,
            "task": trip.policy.task,
            "task_reason": trip.policy.task_reason,
            "mode": trip.policy.mode.value,
            "version": trip.policy.policy_version,
        },
        "model": trip.served.name,
        "path": head.path,
        "estimate": told_estimate(trip.estimate),
        "findings": list(x.record.findings),
        "omitted": [part.name for part in trip.call.omitted],
        "stripped_fields": list(x.record.stripped_fields),
        "images": _images(trip, marks, prepared, with_bytes=only == "images"),
    }
    trip.reservation.settle(None)
    chunks = request.body if only == "body" else ()
    await _answer(trip, json.dumps(told).encode(), chunks)


def _images(trip: Trip, marks: Marks, prepared: dict[int, Prepared], *, with_bytes: bool) -> list[dict[str, object]]:
    told: list[dict[str, object]] = []
    for place, (part, fact, plan) in enumerate(zip(trip.call.images, trip.facts, trip.plans, strict=False)):
        entry = told_image(part.name, fact, plan) | {"uuid": marks.id_of(place)}
        image = prepared.get(place)
        if image is not None:
            entry["bytes_prepared"] = image.file_byte_count
        if with_bytes:
            entry["data_url"] = None if image is None else image.data_url.decode()
        told.append(entry)
    return told


async def _answer(trip: Trip, told: bytes, body: Sequence[bytes | memoryview]) -> None:
    """The answer's last member is the body, as it stands: no number of it is spelt anew."""
    x = trip.x
    pieces: list[bytes] = [told]
    if body:
        pieces = [told[:-1], b', "body": ', *(bytes(chunk) for chunk in body), b"}"]
    x.record.status = 200
    headers = (
        ("Content-Type", "application/json"),
        ("x-request-id", x.client.head.request_id),
        *x.record.rate_headers,
    )
    await x.client.start(200, headers, sum(map(len, pieces)))
    for piece in pieces:
        await x.client.write(piece)
    await x.client.finish()
    x.watch.lap("relay")
