"""``client.*`` and ``error.*``: what the client received."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from tests.case_runner.behaviour import BadScript, decoded
from tests.case_runner.checks.headers import header_tables
from tests.case_runner.checks.table import Problems, Table
from tests.case_runner.http_client import Response
from tests.case_runner.observation import Exchange, Observation
from tests.case_runner.wire import Head

Received = tuple[Observation, Exchange]
_NO_HEAD = Head("", ())
_ERROR_EVENT = re.compile(rb"^event:\s*error\s*$", re.MULTILINE)


def endings(response: Response) -> set[str]:
    """The words of FORMAT for how a response ended."""
    match response.ending:
        case "no-response":
            return {"closed-without-response"}
        case "aborted":
            return {"aborted-transfer", "closed-without-response"} if not response.head else {"aborted-transfer"}
        case "complete":
            return {"error-event-then-close", "complete"} if has_error_event(bytes(response.body)) else {"complete"}
        case other:
            return {other}


def has_error_event(body: bytes) -> bool:
    """Whether an event stream's last event but an end marker tells of an error."""
    events = [each for each in re.split(rb"\r?\n\r?\n", body) if each.strip()]
    while events and events[-1].strip() == b"data: [DONE]":
        events.pop()
    if not events:
        return False
    last = events[-1]
    if _ERROR_EVENT.search(last):
        return True
    data = b"\n".join(line[5:].strip() for line in last.splitlines() if line.startswith(b"data:"))
    try:
        document = json.loads(data)
    except ValueError:
        return False
    return isinstance(document, dict) and (isinstance(document.get("error"), dict) or document.get("type") == "error")


def events_of(body: bytes) -> list[tuple[bytes, ...]]:
    """The events of a stream as their lines, comments taken away."""
    events: list[tuple[bytes, ...]] = []
    lines: list[bytes] = []
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b":"):
            continue
        if line:
            lines.append(line)
        elif lines:
            events.append(tuple(lines))
            lines = []
    if lines:
        events.append(tuple(lines))
    return events


def _body(got: Received) -> bytes:
    return bytes(got[1].response.body)


def _backend_body(got: Received) -> bytes | None:
    calls = got[1].calls
    return bytes(calls[-1].sent_body) if calls else None


def _head(got: Received) -> Head:
    return got[1].response.head or _NO_HEAD


def _body_equal(got: Received, wanted: bool, _: Mapping[str, Any]) -> Problems:
    sent = _backend_body(got)
    if wanted and (sent is None or sent != _body(got)):
        yield f"{len(_body(got))} bytes are not the backend's {'none' if sent is None else len(sent)}"


def _ends(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    found = endings(got[1].response)
    if not found & set(wanted):
        yield f"{'/'.join(sorted(found))}, not one of {wanted}"


def _within_ms(got: Received, wanted: float, _: Mapping[str, Any]) -> Problems:
    if got[1].response.took_ms > wanted * got[0].time_scale:
        yield f"{got[1].response.took_ms:.0f} ms"


def _first_event(got: Received, wanted: float, _: Mapping[str, Any]) -> Problems:
    response = got[1].response
    at_s = response.event_at_s()
    if at_s is None:
        yield "no event came"
    elif (at_s - response.started_at_s) * 1000 > wanted * got[0].time_scale:
        yield f"after {(at_s - response.started_at_s) * 1000:.0f} ms"


def _status_first(got: Received, wanted: bool, _: Mapping[str, Any]) -> Problems:
    response = got[1].response
    at_s = response.event_at_s()
    early = response.head_at_s is not None and at_s is not None and response.head_at_s < at_s
    if early is not wanted:
        yield "the status did not come before the first event"


def _events_equal(got: Received, wanted: bool, _: Mapping[str, Any]) -> Problems:
    sent = _backend_body(got)
    if wanted and (sent is None or events_of(sent) != events_of(_body(got))):
        yield "other events than the backend's"


def _extra_lines(got: Received, wanted: str, _: Mapping[str, Any]) -> Problems:
    left = (_backend_body(got) or b"").decode("utf-8", "replace").splitlines()
    for line in _body(got).decode("utf-8", "replace").splitlines():
        if left and line == left[0]:
            left.pop(0)
        elif re.search(wanted, line) is None:
            yield f"an extra line {line[:60]!r}"


def _must_not_contain(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for text in wanted:
        if text.encode() in _body(got):
            yield f"{text!r} is there"


def _must_contain(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for text in wanted:
        if text.encode() not in _body(got):
            yield f"{text!r} is missing"


def _count(got: Received, wanted: dict[str, int], _: Mapping[str, Any]) -> Problems:
    for text, times in wanted.items():
        if _body(got).count(text.encode()) != times:
            yield f"{text!r} {_body(got).count(text.encode())} times, not {times}"


def _count_lines(got: Received, wanted: dict[str, int], _: Mapping[str, Any]) -> Problems:
    lines = _body(got).decode("utf-8", "replace").splitlines()
    for text, times in wanted.items():
        found = sum(text in line for line in lines)
        if found != times:
            yield f"{text!r} in {found} lines, not {times}"


def _decoded(got: Received) -> bytes:
    return decoded(_body(got), _head(got).get("content-encoding"))


def _consistent(got: Received, wanted: bool, _: Mapping[str, Any]) -> Problems:
    try:
        _decoded(got)
        fits = True
    except (OSError, EOFError, zlib.error, BadScript):
        fits = False
    if fits is not wanted:
        yield f"content-encoding {_head(got).get('content-encoding')!r} does not fit the body"


def _decoded_equals(got: Received, wanted: str, _: Mapping[str, Any]) -> Problems:
    """``wanted`` names a file of the case (its suffix left open) that holds the body without coding."""
    files = [each for each in sorted(got[0].folder.glob(f"{wanted}*")) if wanted in {each.stem, each.name}]
    if not files:
        yield f"the case has no file {wanted}"
        return
    try:
        body = _decoded(got)
    except (OSError, EOFError, zlib.error, BadScript) as error:
        yield f"does not decode: {error}"
        return
    if body != files[0].read_bytes():
        yield f"{len(body)} bytes are not those of {files[0].name}"


CLIENT: Table[Received] = Table(
    "client.",
    {
        "body_bytes_equal_backend": _body_equal,
        "ends": _ends,
        "within_ms": _within_ms,
        "first_event_within_ms": _first_event,
        "status_sent_before_first_event": _status_first,
        "events_equal_backend": _events_equal,
        "extra_lines_only_match": _extra_lines,
        "must_not_contain": _must_not_contain,
        "must_contain": _must_contain,
        "count": _count,
        "count_lines": _count_lines,
        "consistent_encoding": _consistent,
        "decoded_body_sha256_of": _decoded_equals,
        **header_tables(_head),
    },
    {"no_blank_line_dispatch_after_comment": "preferred: the form of a comment, not required"},
)


def _json(got: Received, wanted: bool, _: Mapping[str, Any]) -> Problems:
    exchange = got[1]
    if wanted and not exchange.error:
        yield f"no error object: {_body(got)[:80]!r}"
    elif wanted and got[0].path == "/v1/messages" and json.loads(_body(got)).get("type") != "error":
        yield "not the outer form of the Messages route"


def _type_any_of(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    if got[1].error.get("type") not in wanted:
        yield f"{got[1].error.get('type')!r} is not one of {wanted}"


def _type_none_of(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    if got[1].error.get("type") in wanted:
        yield f"{got[1].error.get('type')!r}"


def _must_not_match(got: Received, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for pattern in wanted:
        if re.search(pattern, _body(got).decode("utf-8", "replace")):
            yield f"the answer matches {pattern}"
        if re.search(pattern, got[1].log):
            yield f"the log matches {pattern}"


ERROR: Table[Received] = Table(
    "error.",
    {
        "json": _json,
        "type_any_of": _type_any_of,
        "type_none_of": _type_none_of,
        "must_not_contain": _must_not_contain,
        "must_not_match": _must_not_match,
    },
    {"should_name": "desirable by FORMAT, not a failure"},
)
