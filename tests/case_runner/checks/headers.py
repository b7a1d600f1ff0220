"""Headers, towards the backend and towards the client: the same keys mean the same on both sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tests.case_runner.checks.table import Check, Problems
from tests.case_runner.wire import Head

Subject = TypeVar("Subject")
HeaderCheck = Check[Head]


def _values(head: Head, name: str) -> list[str]:
    """The values of a header; one line ``a, b`` equals two lines, except for Set-Cookie."""
    lines = head.values(name)
    if name.lower() == "set-cookie":
        return lines
    return [part.strip() for line in lines for part in line.split(",") if part.strip()]


def _as_list(wanted: str | list[str]) -> list[str]:
    return [wanted] if isinstance(wanted, str) else wanted


def _absent(head: Head, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    for name in wanted:
        if head.has(name):
            yield f"{name}: {head.get(name)!r} is there"


def _equal(head: Head, wanted: dict[str, str], _: Mapping[str, Any]) -> Problems:
    for name, value in wanted.items():
        if head.values(name) != [value]:
            yield f"{name}: {head.values(name)}, not {value!r}"


def _header_values(head: Head, wanted: dict[str, str | list[str]], _: Mapping[str, Any]) -> Problems:
    for name, value in wanted.items():
        expected = [part.strip() for line in _as_list(value) for part in _split(name, line)]
        if _values(head, name) != expected:
            yield f"{name}: {_values(head, name)}, not {expected}"


def _split(name: str, line: str) -> list[str]:
    return [line] if name.lower() == "set-cookie" else line.split(",")


def _values_include(head: Head, wanted: dict[str, str | list[str]], _: Mapping[str, Any]) -> Problems:
    for name, value in wanted.items():
        found = _values(head, name)
        for part in _as_list(value):
            if part not in found and part not in head.values(name):
                yield f"{name}: {part!r} is not in {found}"


def _matches(head: Head, wanted: dict[str, str], _: Mapping[str, Any]) -> Problems:
    for name, pattern in wanted.items():
        if re.search(pattern, head.get(name)) is None:
            yield f"{name}: {head.get(name)!r} does not match"


def _single_framing(head: Head, wanted: bool, _: Mapping[str, Any]) -> Problems:
    framings = len(head.values("content-length")) + len(head.values("transfer-encoding"))
    if wanted and framings != 1:
        yield f"{framings} framing headers"


def header_tables(head_of: Callable[[Subject], Head]) -> dict[str, Check[Subject]]:
    """The entries for a table whose subject has a head."""

    def over(check: HeaderCheck) -> Check[Subject]:
        return lambda subject, wanted, expect: check(head_of(subject), wanted, expect)

    return {
        "headers_absent": over(_absent),
        "headers_equal": over(_equal),
        "header_values": over(_header_values),
        "header_values_include": over(_values_include),
        "header_matches": over(_matches),
        "single_framing": over(_single_framing),
    }
