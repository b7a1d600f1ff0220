"""Top-level keys about requests and answers: status, error, calls, estimates, times; of one step or of a whole case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.case_runner import pictures, pointer
from tests.case_runner.checks.backend import BACKEND, Forwarded
from tests.case_runner.checks.client import CLIENT, ERROR
from tests.case_runner.checks.table import Check, Problems
from tests.case_runner.observation import Exchange, Scope

_IMAGE_TOKENS = "x-vlmgw-image-tokens"
_IMAGES = "x-vlmgw-images"


def _status(scope: Scope, wanted: int | list[int], _: Mapping[str, Any]) -> Problems:
    allowed = wanted if isinstance(wanted, list) else [wanted]
    for exchange in scope.exchanges:
        response = exchange.response
        if response.status not in allowed:
            detail = exchange.message or response.problem or response.ending
            yield f"{response.status}, not {wanted} ({detail[:160]})"


def _backend_calls(scope: Scope, wanted: int, expect: Mapping[str, Any]) -> Problems:
    repeat = expect.get("repeat", 1)
    if len(scope.calls) != wanted * repeat:
        yield f"{len(scope.calls)}, not {wanted * repeat}"


def _calls_total(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if len(scope.seen.calls) != wanted:
        yield f"{len(scope.seen.calls)}, not {wanted}"


def _backend(scope: Scope, wanted: dict[str, Any], _: Mapping[str, Any]) -> Problems:
    for exchange in scope.exchanges:
        if not exchange.calls:
            yield "no request reached the backend"
        for call in exchange.calls:
            yield from BACKEND.judge(Forwarded(call, exchange.request_body, exchange.sent_json), wanted)


def _client(scope: Scope, wanted: dict[str, Any], _: Mapping[str, Any]) -> Problems:
    for exchange in scope.exchanges:
        yield from CLIENT.judge((scope.seen, exchange), wanted)


def _error(scope: Scope, wanted: dict[str, Any], _: Mapping[str, Any]) -> Problems:
    for exchange in scope.exchanges:
        yield from ERROR.judge((scope.seen, exchange), wanted)


def _max_ms(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    for exchange in scope.exchanges:
        if exchange.response.took_ms > wanted * scope.seen.time_scale:
            yield f"{exchange.response.took_ms:.0f} ms"


def _message_mentions(scope: Scope, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for number in wanted:
        if re.search(rf"(?<![\d.]){re.escape(str(number))}(?![\d])", scope.first.message) is None:
            yield f"{number} is not in {scope.first.message[:160]!r}"


def _message_must_not_match(scope: Scope, wanted: str, _: Mapping[str, Any]) -> Problems:
    if re.search(wanted, scope.first.message):
        yield f"{scope.first.message[:160]!r}"


def _message_must_not_contain(scope: Scope, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for text in wanted:
        if text in bytes(scope.first.response.body).decode("utf-8", "replace"):
            yield f"{text!r} is there"


def _header_number(exchange: Exchange, name: str) -> int | None:
    head = exchange.response.head
    value = "" if head is None else head.get(name)
    return int(value) if value.isdigit() else None


def _estimate(scope: Scope, wanted: dict[str, int], _: Mapping[str, Any]) -> Problems:
    unknown = wanted.keys() - {"image_tokens", "tolerance"}
    if unknown:
        yield f"{', '.join(unknown)}: a key that the runner does not know"
    found = _header_number(scope.first, _IMAGE_TOKENS)
    if found is None or abs(found - wanted["image_tokens"]) > wanted.get("tolerance", 0):
        yield f"{found} image tokens, not {wanted['image_tokens']} +-{wanted.get('tolerance', 0)}"


def _tokens_of_forwarded(scope: Scope) -> int:
    """Image tokens by FORMAT's rule, over every picture that reached the backend, each as often as it is there."""
    grid = scope.seen.grid
    count = 0
    for call in scope.calls:
        for part in pointer.pictures(pointer.parsed(call.body)):
            source = part.get("image_url")
            text = source.get("url") if isinstance(source, dict) else source
            picture = pictures.decode(pictures.picture_bytes(str(text))[1])
            count += max(1, round(picture.width / grid)) * max(1, round(picture.height / grid))
    return count


def _tokens_agree(scope: Scope, wanted: bool | str, _: Mapping[str, Any]) -> Problems:
    """What the gateway counted is what the forwarded rasters cost: one frame once, a picture sent twice both times."""
    found, right = _header_number(scope.first, _IMAGE_TOKENS), _tokens_of_forwarded(scope)
    if wanted and found != right:
        yield f"{found} image tokens counted, {right} by the forwarded pictures"


def _images_counted(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    head = scope.first.response.head
    numbers = re.findall(r"=(\d+)", head.get(_IMAGES)) if head is not None else []
    if sum(map(int, numbers)) != wanted:
        yield f"{sum(map(int, numbers))}, not {wanted}"


def _interim_status(scope: Scope, wanted: int | None, _: Mapping[str, Any]) -> Problems:
    found = [status for status, _ in scope.first.response.interim]
    if found != ([] if wanted is None else [wanted]):
        yield f"{found}, not {wanted}"


def _interim_within(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    response = scope.first.response
    for _status_code, at_s in response.interim:
        if (at_s - response.started_at_s) * 1000 > wanted * scope.seen.time_scale:
            yield f"after {(at_s - response.started_at_s) * 1000:.0f} ms"


def _connection_closed(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    response = scope.first.response
    closed = response.ending != "complete" or bool(response.closed_afterwards)
    if closed is not wanted:
        yield f"the connection is {'closed' if closed else 'open'}"


def _retry_after(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    for exchange in scope.exchanges:
        head = exchange.response.head
        if (head is not None and head.get("retry-after").isdigit()) is not wanted:
            yield "no Retry-After in whole seconds" if wanted else "a Retry-After"


ANSWER_CHECKS: dict[str, Check[Scope]] = {
    "status": _status,
    "backend_calls": _backend_calls,
    "backend_calls_total": _calls_total,
    "backend": _backend,
    "client": _client,
    "error": _error,
    "max_ms": _max_ms,
    "message_mentions": _message_mentions,
    "message_must_not_match": _message_must_not_match,
    "message_must_not_contain": _message_must_not_contain,
    "estimate": _estimate,
    "tokens_from": _tokens_agree,
    "tokens_twice": _tokens_agree,
    "image_tokens_counted_once": _tokens_agree,
    "images_counted": _images_counted,
    "interim_status": _interim_status,
    "interim_within_ms": _interim_within,
    "connection_closed_after": _connection_closed,
    "retry_after": _retry_after,
}
ANSWER_INFORMS = {"repeat": "read by the runner: how often the request is sent"}
