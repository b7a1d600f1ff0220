"""Top-level keys about what surrounds a request: origin, private listeners, connections, metrics, memory, relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.case_runner import metrics, pointer
from tests.case_runner.checks.table import Check, Problems
from tests.case_runner.observation import Exchange, Scope
from tests.case_runner.pointer import MISSING, look_up

_DIGESTS = "x-vlmgw-image-digests"
_MIB = 1 << 20


def _alive(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if scope.seen.alive_after is not wanted:
        yield f"{scope.seen.alive_after}: {scope.seen.alive_problem}"


def _origin_calls(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if len(scope.seen.origin_calls) != wanted:
        yield f"{len(scope.seen.origin_calls)}, not {wanted}"


def _origin_calls_at_most(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if len(scope.seen.origin_calls) > wanted:
        yield f"{len(scope.seen.origin_calls)}, more than {wanted}"


def _origin_targets(scope: Scope, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    found = [call.target for call in scope.seen.origin_calls]
    if found != wanted:
        yield f"{found}, not {wanted}"


def _origin_headers_absent(scope: Scope, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for call in scope.seen.origin_calls:
        for name in wanted:
            if call.head.has(name):
                yield f"{name} went to {call.target}"


def _origin_bytes(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.origin_bytes > wanted:
        yield f"{scope.seen.origin_bytes} bytes, more than {wanted}"


def _left_at_s(scope: Scope) -> float:
    return max((each.left_at_s or each.response.ended_at_s for each in scope.exchanges), default=0.0)


def _closed_within(scope: Scope, wires: list[float | None], wanted: float, what: str) -> Problems:
    if not wires and any(each.left_at_s is not None for each in scope.exchanges):
        yield f"nothing had been asked of the {what} when the client left"
    for closed_at_s in wires:
        if closed_at_s is None:
            yield f"the connection to the {what} is still open"
        elif (closed_at_s - _left_at_s(scope)) * 1000 > wanted * scope.seen.time_scale:
            yield f"closed after {(closed_at_s - _left_at_s(scope)) * 1000:.0f} ms"


def _origin_closed(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    yield from _closed_within(scope, [call.wire.closed_at_s for call in scope.seen.origin_calls], wanted, "origin")


def _backend_closed(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    yield from _closed_within(scope, [call.wire.closed_at_s for call in scope.calls], wanted, "backend")


def _first_closed(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    calls = scope.seen.calls
    if not calls:
        yield "no request reached the backend"
    elif (calls[0].wire.closed_at_s is not None) is not wanted:
        yield "the first connection is still open" if wanted else "the first connection was closed"


def _private(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.private_connections != wanted:
        yield f"{scope.seen.private_connections}, not {wanted}"


def _backend_must_not_contain(scope: Scope, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for call in scope.seen.calls:
        for text in wanted:
            if text.encode() in call.head.raw + b"\r\n\r\n" + call.body:
                yield f"{text!r} reached replica {call.replica}"


def _metrics(scope: Scope, wanted: dict[str, str], _: Mapping[str, Any]) -> Problems:
    unknown = wanted.keys() - {"counted_as"}
    if unknown:
        yield f"{', '.join(unknown)}: a key that the runner does not know"
    outcome = metrics.OUTCOMES.get(wanted.get("counted_as", ""))
    before, after = scope.seen.before, scope.seen.after
    if outcome is None or before is None or after is None:
        yield f"{wanted}: no outcome that the runner knows, or no scrape"
        return
    label = f'outcome="{outcome}"'
    growth = after.total(metrics.REQUESTS, label) - before.total(metrics.REQUESTS, label)
    if growth != len(scope.seen.exchanges):
        yield f"{metrics.REQUESTS}{{{label}}} grew by {growth:g}, not by {len(scope.seen.exchanges)}"


def _budget_returned(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    after = scope.seen.after
    held = None if after is None else after.total(metrics.RESERVED)
    if (held == 0) is not wanted:
        yield f"{held} tokens are still reserved"


def _rss(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    if scope.seen.peak_growth_bytes > wanted * _MIB:
        yield f"{scope.seen.peak_growth_bytes / _MIB:.0f} MB"


# --- relations --------------------------------------------------------------------------------------------------------


def _relations(scope: Scope, wanted: list[dict[str, Any]], _: Mapping[str, Any]) -> Problems:
    for relation in wanted:
        subject = next((key for key in _RELATIONS if key in relation), None)
        unknown = relation.keys() - {subject, "of", "rule"}
        if subject is None or unknown:
            yield f"{relation}: a relation that the runner does not know"
            continue
        for problem in _RELATIONS[subject](scope, relation):
            yield f"{relation}: {problem}"


def _step(scope: Scope, name: str) -> Exchange:
    """``step2`` is the second request of the case."""
    return scope.seen.steps[int(name.removeprefix("step")) - 1]


def _of(scope: Scope, relation: dict[str, Any]) -> list[Exchange]:
    named = relation.get("of")
    return scope.seen.steps if named is None else [_step(scope, name.split("/")[0]) for name in named]


def digests(exchange: Exchange) -> list[str]:
    """The identities of a request's pictures that the gateway shows in its answer."""
    head = exchange.response.head
    said = head.get(_DIGESTS) if head is not None else ""
    return [each.strip() for each in said.split(",") if each.strip()]


def uuids(exchange: Exchange) -> list[str]:
    """The uuids beside pictures in the bodies that went to a backend."""
    found = []
    for call in exchange.calls:
        found += [str(part["uuid"]) for part in pointer.pictures(pointer.parsed(call.body)) if part.get("uuid")]
    return found


def _hash(scope: Scope, relation: dict[str, Any]) -> Problems:
    """Every identity that the gateway shows or forwards must agree, or differ; one at least must be there."""
    shown = 0
    for identities_of in (digests, uuids):
        found = []
        for name in relation["of"]:
            step, _, image = name.partition("/image")
            identities = identities_of(_step(scope, step))
            found.append(identities[int(image or 0)] if int(image or 0) < len(identities) else None)
        if not any(found):
            continue
        shown += 1
        distinct = len(set(found))
        if relation["hash"] == "equal" and distinct != 1:
            yield f"{found} differ"
        elif relation["hash"] == "differs" and distinct != len(found):
            yield f"{found} are equal"
        elif relation["hash"] not in {"equal", "differs"}:
            yield f"{relation['hash']!r} is a rule that the runner does not know"
    if not shown:
        yield "the gateway shows no identity"


def _key_bits(scope: Scope, relation: dict[str, Any]) -> Problems:
    for exchange in scope.seen.steps:
        for digest in digests(exchange) + uuids(exchange):
            bits = 4 * len(digest.replace("-", ""))
            if bits < relation["key_min_bits"]:
                yield f"{digest} has {bits} bits"


def _replica(scope: Scope, relation: dict[str, Any]) -> Problems:
    replicas = [{call.replica for call in exchange.calls} for exchange in _of(scope, relation)]
    same = all(each == replicas[0] and each for each in replicas)
    if same is not (relation["replica"] == "equal"):
        yield f"{[sorted(each) for each in replicas]}"


def _bodies(scope: Scope, relation: dict[str, Any]) -> Problems:
    bodies = {call.body for call in scope.seen.calls}
    if len(scope.seen.calls) < 2 or (len(bodies) == 1) is not (relation["backend_bodies"] == "identical"):
        yield f"{len(bodies)} different bodies in {len(scope.seen.calls)} calls"


def _forwarded_uuid(scope: Scope, relation: dict[str, Any]) -> Problems:
    sent = [uuids(exchange) for exchange in _of(scope, relation)]
    flat = [uuid for each in sent for uuid in each]
    match relation["forwarded_uuid"]:
        case "absent or different":
            if len(set(flat)) != len(flat):
                yield f"{flat}"
        case "absent":
            if flat:
                yield f"{flat}"
        case "equal":
            if not flat or len(set(flat)) != 1:
                yield f"{flat}"
        case "different":
            if not all(sent) or len(set(flat)) != len(flat):
                yield f"{flat}"
        case other:
            yield f"{other!r} is a rule that the runner does not know"


def _json_rule(scope: Scope, relation: dict[str, Any]) -> Problems:
    found = [
        look_up(pointer.parsed(call.body), relation["json"]) for each in _of(scope, relation) for call in each.calls
    ]
    shown = [None if value is MISSING else value for value in found]
    match relation.get("rule"):
        case "present":
            holds = bool(found) and all(value is not MISSING and value not in {"", None} for value in found)
        case "absent":
            holds = all(value is MISSING for value in found)
        case "equal":
            holds = len(found) > 1 and MISSING not in found and all(value == found[0] for value in found)
        case "differs":
            holds = len(found) > 1 and len({str(value) for value in found}) == len(found)
        case other:
            yield f"{other!r} is a rule that the runner does not know"
            return
    if not holds:
        yield f"{shown}"


_RELATIONS = {
    "hash": _hash,
    "key_min_bits": _key_bits,
    "replica": _replica,
    "backend_bodies": _bodies,
    "forwarded_uuid": _forwarded_uuid,
    "json": _json_rule,
}

SURROUNDINGS_CHECKS: dict[str, Check[Scope]] = {
    "gateway_alive_after": _alive,
    "origin_calls": _origin_calls,
    "origin_calls_at_most": _origin_calls_at_most,
    "origin_targets": _origin_targets,
    "origin_headers_absent": _origin_headers_absent,
    "origin_bytes_read_at_most": _origin_bytes,
    "origin_connection_closed_within_ms": _origin_closed,
    "backend_connection_closed_within_ms": _backend_closed,
    "first_connection_closed": _first_closed,
    "connections_to_private": _private,
    "backend_must_not_contain": _backend_must_not_contain,
    "metrics": _metrics,
    "kv_budget_returned": _budget_returned,
    "max_rss_growth_mb": _rss,
    "relations": _relations,
}
