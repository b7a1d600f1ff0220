"""What leaves: the headers a backend gets, the edits of the body, and the headers a client gets.

Decided here: which of the client's own headers and fields go no further, what is added, and how what was done is told.
Not decided here: hop-by-hop headers and engine routing headers (``upstream``), how an edit is made (``splice``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import assert_never

from gateway.policy.effective import CacheSalt, EffectivePolicy, FieldAction, Urgency
from gateway.record import ExchangeRecord, RequestHead, TraceContext, stage_totals
from gateway.routing.ask import Decision
from gateway.splice.edit import InsertAfter, Operation, RemoveMember, SetMember, SetString, SetValue, Wrap, rename_model
from gateway.stages.identities import Marks, alone, alone_in_list, beside, hashes, inside_url, member_behind
from gateway.stages.omission import marker_json
from gateway.types import (
    Call,
    EngineKind,
    HeaderList,
    ImageForm,
    ImagePart,
    Prepared,
    TenantId,
    dotted,
)

Salt = Callable[[TenantId, str | None], str]

# 32 hex digits each; more would come near the 4 KiB that some proxies allow a header line.
MAX_DIGESTS = 32
# Which sign goes first: vLLM 0.32.0 serves the smallest number, SGLang 0.5.23 the largest.
_FIRST = {EngineKind.VLLM: -1, EngineKind.SGLANG: 1}
_OURS_PREFIX = "x-vlmgw-"
_CREDENTIALS = frozenset({"authorization", "x-api-key"})
# Responses of ours replace these, should a backend send them.
_REPLACED = frozenset({"x-request-id", "server-timing"})

# Hundredths of a millisecond in milliseconds, up to ten. A float costs more to print than all else of its stage.
_SPELT = tuple([str(hundredths / 100) for hundredths in range(1000)])


def forward_headers(head: RequestHead, *, keep_authorization: bool, readable: bool = False) -> HeaderList:
    """The client's headers without our own and, once tenants have keys, without its credentials.

    ``readable``: the answer will be edited, so it must not come compressed.
    """
    kept = []
    knows_id = False
    for name, value in head.headers:
        lower = name.lower()
        if lower[:8] == _OURS_PREFIX or (not keep_authorization and lower in _CREDENTIALS):
            continue
        if lower == "x-request-id":
            if value != head.request_id:
                continue
            knows_id = True
        if not (readable and lower == "accept-encoding"):
            kept.append((name, value))
    if readable:
        kept.append(("accept-encoding", "identity"))
    if not knows_id:
        kept.append(("x-request-id", head.request_id))
    return kept if head.trace is None else _in_trace(kept, head.trace)


def _in_trace(headers: HeaderList, trace: TraceContext) -> HeaderList:
    """The backend's parent is our call to it. What vendors wrote into ``tracestate`` belongs to the client's trace."""
    gone = {"traceparent"} if trace.parent_id is not None else {"traceparent", "tracestate"}
    return [*(pair for pair in headers if pair[0].lower() not in gone), ("traceparent", trace.traceparent)]


def edits_of(
    call: Call,
    policy: EffectivePolicy,
    marks: Marks,
    prepared: Sequence[tuple[ImagePart, Prepared]],
    salt: Salt,
    record: ExchangeRecord,
) -> list[Operation]:
    """Everything that is changed in the body, as operations for ``splice``; empty = relayed as it came.

    Fields that only an engine understands are added to backends known to be vLLM or SGLang, to no other.
    """
    operations: list[Operation] = []
    if policy.model is not None and policy.model != call.model:
        operations.append(rename_model(policy.model))
    operations += [SetMember(*addition) for addition in call.additions]
    if call.foreign_fields:
        actions = policy.engine_fields
        taken = [at for at in call.foreign_fields if actions.action(str(at[-1])) is not FieldAction.ALLOW]
        gone = {(*call.images[place].part, "image_url") for place in marks.withheld}
        operations += [RemoveMember(at[:-1], str(at[-1])) for at in taken if at[:-1] not in gone]
        record.stripped_fields = tuple(dotted(pointer) for pointer in taken)[:16]
    if policy.cache_salt is not CacheSalt.NONE and marks.engine is not EngineKind.GENERIC:
        user = call.user if policy.cache_salt is CacheSalt.USER else None
        operations.append(SetMember((), "cache_salt", json.dumps(salt(policy.tenant, user)).encode()))
    operations += hashes(call, policy, marks)
    if marks.priorities and marks.engine in _FIRST:
        operations += _priority(call, policy, marks.engine)
    operations += [SetValue(part.part, (marker_json(part),)) for part in call.omitted]
    made = {(part.pointer, part.frame): image for part, image in prepared}
    for place, part in enumerate(call.images):
        image = made.get((part.pointer, part.frame))
        if part.frame:
            operations += _further(part, image, marks, place)
            continue
        if part.retype:
            operations.append(SetMember(part.part, "type", b'"image_url"'))
        if place in marks.withheld:
            operations += alone(part, marks, place)
            continue
        if image is not None:
            operations += _delivery(part, image, inside_url(marks, image))
        elif part.wrap:
            operations.append(Wrap(part.pointer, b'{"url":', b"}"))
        operations += beside(part, marks, place, image)
    return operations


def _priority(call: Call, policy: EffectivePolicy, engine: EngineKind) -> list[Operation]:
    """The policy's class, unless the policy lets a client's own number stand."""
    if ("priority",) in call.foreign_fields and policy.engine_fields.action("priority") is FieldAction.ALLOW:
        return []
    rank = {Urgency.HIGH: 1, Urgency.NORMAL: 0, Urgency.LOW: -1}[policy.priority] * _FIRST[engine]
    return [SetMember((), "priority", str(rank).encode())]


def _delivery(part: ImagePart, image: Prepared, inside: bytes) -> tuple[Operation, ...]:
    """A prepared image in the form of its part. Nothing of the image is copied. ``inside``: JSON behind its URL."""
    media_type = image.format.media_type.encode()
    bare = memoryview(image.data_url)[image.data_url.index(b",") + 1 :]
    match part.form:
        case ImageForm.DATA_URL if part.wrap:
            return (SetValue(part.pointer, (b'{"url":"', image.data_url, b'"' + inside + b"}")),)
        case ImageForm.DATA_URL | ImageForm.EITHER:
            return (SetString(part.pointer, image.data_url),)
        case ImageForm.BASE64:
            declared = SetMember(part.pointer[:-1], "media_type", b'"' + media_type + b'"')
            return SetString(part.pointer, bare), declared
        case ImageForm.BASE64_SOURCE:
            before = b'{"type":"base64","media_type":"' + media_type + b'","data":"'
            return (SetValue(part.pointer[:-1], (before, bare, b'"}')),)
        case _:
            assert_never(part.form)


def _further(part: ImagePart, image: Prepared | None, marks: Marks, place: int) -> list[Operation]:
    """A frame or page behind the first, as a part of its own in the same form."""
    if place in marks.withheld:
        return [InsertAfter(part.part, alone_in_list(part, marks, place))]
    return [] if image is None else [InsertAfter(part.part, _further_part(part, image, marks, place))]


def _further_part(part: ImagePart, image: Prepared, marks: Marks, place: int) -> tuple[bytes | memoryview, ...]:
    if part.form is not ImageForm.DATA_URL:
        bare = memoryview(image.data_url)[image.data_url.index(b",") + 1 :]
        head = b'{"type":"image","source":{"type":"base64","media_type":"' + image.format.media_type.encode()
        return head + b'","data":"', bare, b'"}}'
    behind = member_behind(marks, place)
    if part.pointer[-1] == "url" or part.wrap:
        end = b'"' + inside_url(marks, image) + b"}" + behind + b"}"
        return b'{"type":"image_url","image_url":{"url":"', image.data_url, end
    return b'{"type":"input_image","image_url":"', image.data_url, b'"' + behind + b"}"


def server_timing(stages: Sequence[tuple[str, float]]) -> str:
    """Every stage so far in milliseconds (W3C Server Timing); a stage met twice counts together."""
    # Cut, not rounded, to hundredths.
    totals = stage_totals(stages).items()
    return ", ".join(
        [f"{stage};dur={_SPELT[n] if (n := int(s * 1e5)) < len(_SPELT) else n / 100}" for stage, s in totals]
    )


def response_headers(record: ExchangeRecord, decision: Decision, backend_headers: HeaderList) -> list[tuple[str, str]]:
    """The backend's end-to-end headers and ours."""
    headers = [
        (name, value)
        for name, value in backend_headers
        if (lower := name.lower()) not in _REPLACED and lower[:8] != _OURS_PREFIX
    ]
    if record.rate_headers:
        ours = {name for name, _ in record.rate_headers}
        headers = [header for header in headers if header[0].lower() not in ours] + record.rate_headers
    headers.append(("x-request-id", record.request_id))
    headers.append(("x-vlmgw-backend", decision.backend))
    estimate = record.estimate
    if estimate is not None:
        if record.images:
            headers += [
                ("x-vlmgw-image-tokens", str(estimate.image_tokens)),
                ("x-vlmgw-image-tokens-original", str(record.image_tokens_original)),
                (
                    "x-vlmgw-images",
                    f"passed={record.images_passed}, shrunk={record.images_shrunk}, recoded={record.images_recoded}"
                    + (f", omitted={record.images_omitted}" if record.images_omitted else "")
                    + (f", by_id={record.image_ids_alone}" if record.image_ids_alone else ""),
                ),
                ("x-vlmgw-geometry", ", ".join(record.geometry[:MAX_DIGESTS])),
                *((("x-vlmgw-coordinates", record.coordinates),) if record.coordinates is not None else ()),
                ("x-vlmgw-image-digests", ",".join(record.image_digests[:MAX_DIGESTS])),
            ]
        if record.clips:
            done = ", ".join(f"{kind}-{action}={count}" for (kind, action), count in record.clips.items())
            headers += [("x-vlmgw-clips", done), ("x-vlmgw-video-tokens", str(record.video_tokens))]
        headers.append(("x-vlmgw-prompt-tokens-estimate", str(estimate.prompt_tokens)))
    headers.append(("Server-Timing", server_timing(record.stages)))
    return headers
