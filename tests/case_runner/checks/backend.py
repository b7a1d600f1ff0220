"""``backend.*``: what one request must have been when it reached the backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.case_runner import pointer
from tests.case_runner.backend import BackendCall
from tests.case_runner.checks.headers import header_tables
from tests.case_runner.checks.images import judge_image
from tests.case_runner.checks.table import Problems, Table
from tests.case_runner.pointer import MISSING, look_up
from tests.case_runner.wire import Head


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request as the backend got it beside what the client had sent."""

    call: BackendCall
    request_body: bytes
    sent: Any

    @property
    def head(self) -> Head:
        """Its head."""
        return self.call.head

    @property
    def body(self) -> Any:
        """Its body parsed; MISSING when it is no JSON."""
        return pointer.parsed(self.call.body)


def _image_count(seen: Forwarded, wanted: int, _: Mapping[str, Any]) -> Problems:
    found = sum(1 for _ in pointer.pictures(seen.body))
    if found != wanted:
        yield f"{found} pictures, not {wanted}"


def _image_count_at_most(seen: Forwarded, wanted: int, _: Mapping[str, Any]) -> Problems:
    found = sum(1 for _ in pointer.pictures(seen.body))
    if found > wanted:
        yield f"{found} pictures, more than {wanted}"


def _images(seen: Forwarded, wanted: list[dict[str, Any]], _: Mapping[str, Any]) -> Problems:
    for number, expect in enumerate(wanted):
        for problem in judge_image(seen.body, seen.sent, expect):
            yield f"[{number}] {problem}"


def _json_equal_except(seen: Forwarded, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    if seen.sent is MISSING or seen.body is MISSING:
        yield "one of the bodies is no JSON"
        return
    mine, theirs = (pointer.without(pointer.without_additions(body), wanted) for body in (seen.body, seen.sent))
    if mine != theirs:
        yield f"differs at {_first_difference(mine, theirs)}"


def _first_difference(a: Any, b: Any, at: str = "") -> str:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            if a.get(key, MISSING) != b.get(key, MISSING):
                return _first_difference(a.get(key, MISSING), b.get(key, MISSING), f"{at}/{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y:
                return _first_difference(x, y, f"{at}/{index}")
    return at or "/"


def _body_equal(seen: Forwarded, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if wanted and seen.call.body != seen.request_body:
        yield f"{len(seen.call.body)} bytes are not the client's {len(seen.request_body)}"


def _raw_contains(seen: Forwarded, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for text in wanted:
        if text.encode("utf-8", "surrogatepass") not in seen.call.body:
            yield f"{text[:60]!r} is missing"


def _raw_must_not_contain(seen: Forwarded, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for text in wanted:
        if text.encode() in seen.call.body:
            yield f"{text[:60]!r} is there"


def _json_values(seen: Forwarded, wanted: dict[str, Any], _: Mapping[str, Any]) -> Problems:
    for at, value in wanted.items():
        if look_up(seen.body, at) != value:
            yield f"{at} is {str(look_up(seen.body, at))[:80]!r}"


def _json_numbers(seen: Forwarded, wanted: dict[str, str | int | float], _: Mapping[str, Any]) -> Problems:
    for at, value in wanted.items():
        found = look_up(seen.body, at)
        if isinstance(found, bool) or not isinstance(found, int | Decimal) or Decimal(found) != Decimal(str(value)):
            yield f"{at} is {found!r}, not the number {value}"


def _absent(seen: Forwarded, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for at in wanted:
        if look_up(seen.body, at) is not MISSING:
            yield f"{at} is there"


def _no_duplicate_keys(seen: Forwarded, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if not wanted:
        return
    try:
        pointer.check_no_duplicates(seen.call.body)
    except pointer.DuplicateKey as error:
        yield f"{error} is there twice"
    except ValueError as error:
        yield f"no JSON: {error}"


def _host_is_backend(seen: Forwarded, wanted: bool, _: Mapping[str, Any]) -> Problems:
    hosts = {f"127.0.0.1:{seen.call.port}", f"localhost:{seen.call.port}"}
    if (seen.head.get("host") in hosts) is not wanted:
        yield f"{seen.head.get('host')!r}"


def _max_body_bytes(seen: Forwarded, wanted: int, _: Mapping[str, Any]) -> Problems:
    if len(seen.call.body) > wanted:
        yield f"{len(seen.call.body)} bytes, more than {wanted}"


BACKEND: Table[Forwarded] = Table(
    "backend.",
    {
        "image_count": _image_count,
        "image_count_at_most": _image_count_at_most,
        "images": _images,
        "json_equal_except": _json_equal_except,
        "body_bytes_equal_request": _body_equal,
        "raw_contains": _raw_contains,
        "raw_must_not_contain": _raw_must_not_contain,
        "json_values": _json_values,
        "json_numbers": _json_numbers,
        "absent": _absent,
        "no_duplicate_keys": _no_duplicate_keys,
        "host_is_backend": _host_is_backend,
        "max_body_bytes": _max_body_bytes,
        **header_tables(lambda seen: seen.head),
    },
    {"raw_contains_preferred": "preferred: spelling that is nice to keep, not required"},
)
