"""A request in several legs: pictures to encoders, a prompt to a prefill, and what they made to the backend chosen.

Decided here: which helper does which part, what is tried again, and what is sent when helpers cannot help: the request
as it is, since consumers and vLLM's decoders do everything themselves where they must. Not decided here: the backend
that answers the client (``delivery``), what the legs say (``handoff``), how they are sent (``upstream.legs``).

A leg makes no token for the client and may be made twice, so one that failed costs time and nothing else. Only chat
completions go in legs; other dialects, and requests whose media are more than single pictures, go whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import urlsplit

from gateway.errors import GatewayError, NoBackend
from gateway.handoff import (
    Chunks,
    Handed,
    embedded,
    encoder_body,
    encoding_key,
    for_decode,
    for_pair,
    for_prefill,
    read_encoding,
    read_kv_params,
)
from gateway.legwork import HelperFailed, LegEnd, Legs
from gateway.ports import Account, UpstreamRequest, UpstreamResponse
from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.routing.holding import RouteKey
from gateway.splice.edit import Operation
from gateway.stages.asking import Content, key_of, sent_digest
from gateway.stages.identities import image_ids
from gateway.stages.outgoing import forward_headers
from gateway.stages.serving import model_of
from gateway.stages.trip import Trip
from gateway.types import (
    BackendName,
    BackendRole,
    BackendView,
    EngineKind,
    ImagePart,
    LongString,
    Prepared,
    RequestCost,
)

_CHAT = "openai_chat"
_CHAT_PATH = "/v1/chat/completions"
_DESCRIBES_BODY = frozenset({"content-type", "content-encoding", "accept", "accept-encoding", "x-request-id"})

Build: TypeAlias = Callable[[Sequence[Operation]], UpstreamRequest]
Images: TypeAlias = Mapping[int, Prepared]


async def send(
    trip: Trip, legs: Legs, view: BackendView, operations: Sequence[Operation], prepared: Images, build: Build
) -> UpstreamResponse:
    """Forward to ``view`` what helpers have prepared. Raises what ``Upstream.forward`` raises, and NoBackend."""
    is_chat = trip.x.dialect.name == _CHAT and not trip.policy.shadow
    if is_chat and view.role is BackendRole.CONSUMER and view.engine is EngineKind.VLLM:
        operations = await _encoded(trip, legs, operations, prepared)
    elif is_chat and view.role is BackendRole.DECODE and view.engine is EngineKind.SGLANG:
        return await _paired(trip, legs, view, operations, build)
    elif is_chat and view.role is BackendRole.DECODE and view.engine is EngineKind.VLLM:
        operations = await _prefilled(trip, legs, operations, build)
    request = build(operations)
    trip.x.watch.lap("splice")
    return await trip.x.ports.upstream.forward(view.name, request)


def _note(trip: Trip, role: BackendRole, end: str, count: int = 1) -> None:
    legs = trip.x.record.legs
    legs[role.value, end] = legs.get((role.value, end), 0) + count


def _handed(trip: Trip) -> Handed:
    if trip.handed is None:
        trip.handed = Handed()
    return trip.handed


# --- pictures ---------------------------------------------------------------------------------------------------------


async def _encoded(trip: Trip, legs: Legs, operations: Sequence[Operation], prepared: Images) -> Sequence[Operation]:
    """With every picture's encoding in its place, or as they were: an engine takes no mixture."""
    if not trip.call.images or not _may_embed(trip):
        return operations
    ids = image_ids(trip.x.world.identify, trip.policy, trip.call, trip.facts, trip.plans)
    parts = [
        (part, encoding_key(image_id, part.detail))
        for part, image_id in zip(trip.call.images, ids, strict=bool(ids))
        if image_id is not None
    ]
    if len(parts) < len(trip.call.images):
        return operations
    found = _handed(trip).encodings
    missing: dict[str, int] = {}
    for index, (_, key) in enumerate(parts):
        known = legs.recall(key)
        if known is not None and legs.is_written(key):
            found[key] = known
            _note(trip, BackendRole.ENCODER, "remembered")
        elif key not in found:
            missing.setdefault(key, index)
    if missing:
        await _encode(trip, legs, missing, prepared)
        trip.x.watch.lap("encode")
    if any(key not in found for _, key in parts):
        _note(trip, BackendRole.ENCODER, "whole")
        return operations
    return embedded(operations, [(part, found[key]) for part, key in parts])


def _may_embed(trip: Trip) -> bool:
    """Single pictures only, all of them looked at, none under settings of the client's own."""
    call = trip.call
    if call.other_media or len(trip.plans) != len(call.images) or any(part.frame for part in call.images):
        return False
    if len({part.part for part in call.images}) != len(call.images):
        return False
    return not trip.policy.engine_fields.allows_any(call.foreign_fields)


async def _encode(trip: Trip, legs: Legs, missing: dict[str, int], prepared: Images) -> None:
    """Ask encoders for all that is missing at once; those that did not take a picture are not asked for it again."""
    found, upstream = _handed(trip).encodings, trip.x.ports.upstream
    excluded: dict[str, frozenset[BackendName]] = dict.fromkeys(missing, frozenset())
    while missing:
        accounts: list[Account] = []
        calls: list[tuple[BackendName, UpstreamRequest]] = []
        encoders: list[BackendView] = []
        try:
            for key, index in missing.items():
                encoder = _encoder(trip, legs, index, excluded[key])
                if encoder is None:
                    return
                encoders.append(encoder)
                accounts.append(upstream.open_account(encoder.name, _encoder_cost(trip, index)))
                upstream.learn(encoder.name, _picture_key(trip, index))
                calls.append((encoder.name, _encoder_request(trip, index, key, prepared)))
            answers = await legs.ask_each(calls)
        finally:
            for account in accounts:
                account.close()
        again: dict[str, int] = {}
        for (key, index), encoder, answer in zip(missing.items(), encoders, answers, strict=True):
            encoding = read_encoding(answer.body, key, legs.recall(key)) if answer.end is LegEnd.DONE else None
            _note(trip, BackendRole.ENCODER, answer.end if encoding or answer.end is not LegEnd.DONE else "failed")
            if encoding is not None:
                found[key] = encoding
                legs.keep(encoding, encoder)
            elif answer.end is LegEnd.REFUSED and upstream.may_retry():
                excluded[key] |= {encoder.name}
                again[key] = index
            else:
                return
        missing = again


def _encoder(trip: Trip, legs: Legs, index: int, excluded: frozenset[BackendName]) -> BackendView | None:
    """The encoder that has this picture, or its home among them within the load bound."""
    cost = _encoder_cost(trip, index)
    ask = RouteAsk(
        model=model_of(trip.policy, trip.served),
        key=_picture_key(trip, index),
        prompt_tokens=cost.prompt_tokens,
        kv_tokens=cost.kv_tokens,
        excluded=excluded,
        request_id=trip.x.record.request_id,
    )
    views = [view for view in legs.helpers(BackendRole.ENCODER) if view.engine is EngineKind.VLLM]
    return _chosen(trip, views, ask)


def _chosen(trip: Trip, views: Sequence[BackendView], ask: RouteAsk) -> BackendView | None:
    try:
        name = decide(views, ask, trip.x.ports.upstream.holdings(ask.key), trip.x.world.routing).backend
    except GatewayError:  # whatever leaves nobody: the request goes whole
        return None
    return next(view for view in views if view.name == name)


def _picture_key(trip: Trip, index: int) -> RouteKey:
    after = trip.plans[index].after
    return RouteKey((sent_digest(trip.facts[index], trip.plans[index]),), (after.vit_patches,), (after.prompt_tokens,))


def _encoder_cost(trip: Trip, index: int) -> RequestCost:
    after = trip.plans[index].after
    return RequestCost(after.tokens, 0, after.vit_patches)


def _encoder_request(trip: Trip, index: int, key: str, prepared: Images) -> UpstreamRequest:
    part, image = trip.call.images[index], prepared.get(index)
    source: Chunks = _source(trip, part) if image is None else [b'"', image.data_url, b'"']
    model = trip.policy.model if trip.policy.model is not None else trip.call.model
    return _leg_request(trip, encoder_body(model, source, key, part.detail), f"e{index}")


def _source(trip: Trip, part: ImagePart) -> Chunks:
    if isinstance(part.source, LongString):
        span = part.source.span
        return [trip.body.view(span.start - 1, span.stop + 1)]
    return [json.dumps(part.source).encode()]


def _leg_request(trip: Trip, body: Chunks, leg: str) -> UpstreamRequest:
    """With the client's headers, but those that describe its body, under a request id of its own."""
    x = trip.x
    received = forward_headers(x.client.head, keep_authorization=not x.world.has_tenants)
    headers = [pair for pair in received if pair[0].lower() not in _DESCRIBES_BODY]
    headers += [("content-type", "application/json"), ("x-request-id", f"{x.record.request_id}-{leg}")]
    return UpstreamRequest("POST", _CHAT_PATH, "", headers, body, sum(map(len, body)))


# --- prompts ----------------------------------------------------------------------------------------------------------


async def _prefilled(trip: Trip, legs: Legs, operations: Sequence[Operation], build: Build) -> Sequence[Operation]:
    """With where vLLM's prefill keeps the KV blocks; or as they were, and the decoder computes the prompt itself."""
    handed = _handed(trip)
    if handed.kv_params is None:
        first = _as_leg(build(for_prefill(operations, trip.skeleton.tree)), trip)
        handed.kv_params = await _ask_prefill(trip, legs, first)
        trip.x.watch.lap("prefill")
    if handed.kv_params is None:
        _note(trip, BackendRole.PREFILL, "whole")
        return operations
    return for_decode(operations, handed.kv_params)


async def _ask_prefill(trip: Trip, legs: Legs, request: UpstreamRequest) -> bytes | None:
    upstream = trip.x.ports.upstream
    excluded: frozenset[BackendName] = frozenset()
    while True:
        prefill = _prefill(trip, legs, EngineKind.VLLM, excluded)
        if prefill is None:
            return None
        account = upstream.open_account(prefill.name, _prefill_cost(trip))
        try:
            upstream.learn(prefill.name, _request_key(trip))
            (answer,) = await legs.ask_each([(prefill.name, request)])
        finally:
            account.close()
        _note(trip, BackendRole.PREFILL, answer.end)
        if answer.end is LegEnd.DONE:
            return read_kv_params(answer.body)
        if answer.end is LegEnd.FAILED or not upstream.may_retry():
            return None
        excluded |= {prefill.name}


async def _paired(
    trip: Trip, legs: Legs, view: BackendView, operations: Sequence[Operation], build: Build
) -> UpstreamResponse:
    """Both legs to SGLang at once. Its decoder computes no prompt, so without a prefill there is no answer."""
    upstream = trip.x.ports.upstream
    excluded: frozenset[BackendName] = frozenset()
    while True:
        prefill = _prefill(trip, legs, EngineKind.SGLANG, excluded)
        if prefill is None:
            raise NoBackend(retry_after_s=1.0)
        host = urlsplit(prefill.url).hostname or ""
        both = for_pair(operations, host, prefill.bootstrap_port, legs.new_room())
        request = build(both)
        trip.x.watch.lap("splice")
        account = upstream.open_account(prefill.name, _prefill_cost(trip))
        try:
            upstream.learn(prefill.name, _request_key(trip))
            response = await legs.forward_beside(prefill.name, request, view.name, request)
        except HelperFailed as failure:
            _note(trip, BackendRole.PREFILL, failure.end)
            if failure.end is LegEnd.FAILED or not upstream.may_retry():
                raise NoBackend(detail="the prefill failed", retry_after_s=1.0) from failure
            excluded |= {prefill.name}
            continue
        finally:
            account.close()
        _note(trip, BackendRole.PREFILL, LegEnd.DONE)
        return response


def _prefill(trip: Trip, legs: Legs, engine: EngineKind, excluded: frozenset[BackendName]) -> BackendView | None:
    """The prefill that holds the request's pictures, or the one that answers soonest."""
    cost = _prefill_cost(trip)
    ask = RouteAsk(
        model=model_of(trip.policy, trip.served),
        key=_request_key(trip),
        prompt_tokens=cost.prompt_tokens,
        kv_tokens=cost.kv_tokens,
        needs_vision=bool(trip.call.images),
        excluded=excluded,
        request_id=trip.x.record.request_id,
    )
    views = [view for view in legs.helpers(BackendRole.PREFILL) if view.engine is engine]
    return _chosen(trip, views, ask)


def _request_key(trip: Trip) -> RouteKey:
    content = Content(trip.skeleton.tree, trip.body.view, trip.call, trip.facts, trip.plans, trip.clips)
    return key_of(trip.policy, content, trip.estimate, is_choice=True)


def _prefill_cost(trip: Trip) -> RequestCost:
    patches = sum(plan.after.vit_patches for plan in trip.plans) + trip.clips.patches
    return RequestCost(trip.estimate.prompt_tokens, 1, patches)


def _as_leg(request: UpstreamRequest, trip: Trip) -> UpstreamRequest:
    """The same under a request id of its own, and its answer uncompressed, since we read it."""
    received = [pair for pair in request.headers if pair[0].lower() not in ("x-request-id", "accept-encoding")]
    return replace(request, headers=[*received, ("x-request-id", f"{trip.x.record.request_id}-p")])
