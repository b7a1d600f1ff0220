"""Where values stand in JSON text that is known to be valid.

Decided here: byte spans of values and members. Not decided here: whether the text is JSON (``skeleton`` has parsed it)
and what is done with a span (``edit``). One pass over the text visits every wanted value; whatever lies between is
skipped bracket by bracket.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.types import Buffer, Pointer, Span


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """One member of an object: ``key_start`` is the quote that opens its key, ``value`` the value as spelt."""

    key: str
    key_start: int
    value: Span


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value as spelt (a string with its quotes, a container with its brackets). ``members`` only of objects."""

    value: Span
    members: tuple[MemberSpan, ...] | None = None

    def moved(self, absolute: Callable[[int], int]) -> ValueSpan:
        """The same in other coordinates."""
        if self.members is None:
            return ValueSpan(_moved(self.value, absolute))
        members = tuple(MemberSpan(m.key, absolute(m.key_start), _moved(m.value, absolute)) for m in self.members)
        return ValueSpan(_moved(self.value, absolute), members)


def _moved(span: Span, absolute: Callable[[int], int]) -> Span:
    # The last byte of a value is never inside a handle, the byte after it might be the body's end.
    return Span(absolute(span.start), absolute(span.stop - 1) + 1)


@dataclass(slots=True)
class _Wanted:
    """A tree of the pointers' steps; ``pointer`` is set where one ends."""

    pointer: Pointer | None = None
    steps: dict[str | int, _Wanted] = field(default_factory=dict)


# Groups repeat a bounded number of times inside an atomic group: the engine keeps about 100 bytes for each repetition
# until the match ends, and a possessive group does not step back properly in Python 3.11.2 (python/cpython#101955).
_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY_AND_COLON = re.compile(rb'"([^"\\]*+)"[ \t\r\n]*+:[ \t\r\n]*+')
_TO_NEXT = re.compile(rb"[ \t\r\n]*+,?[ \t\r\n]*+")
_FLAT_VALUE = re.compile(rb'"[^"\\]*+"|[^"{\[,\]} \t\r\n]++')  # a string without escapes, a number, a word
_STRING_PIECE = re.compile(rb'[^"\\]*+(?>(?:\\.[^"\\]*+){0,4000})', re.DOTALL)
# Everything up to the next bracket that is none of a string's, or up to some string.
_TO_BRACKET = re.compile(
    rb'[^"\[\]{}]*+(?>(?:"[^"\\]*+(?:"|(?>(?:\\.[^"\\]*+){1,64})")[^"\[\]{}]*+){0,500})', re.DOTALL
)
_OPENING = frozenset(b"{[")
_QUOTE, _BRACE, _BRACKET = b'"{['


def closing_quote(buffer: Buffer, position: int, stop: int) -> int:
    """The quote that ends the string whose content holds ``position`` (not behind a backslash), or -1."""
    while True:
        reached = match_end(_STRING_PIECE, buffer, position, stop)
        if reached >= stop or reached == position:
            return -1 if reached >= stop or buffer[reached : reached + 1] != b'"' else reached
        position = reached


def match_end(pattern: re.Pattern[bytes], buffer: Buffer, position: int, stop: int) -> int:
    """Where the pattern's match at ``position`` ends, or -1."""
    # `re` searches bytes and mmap alike; our protocol cannot say that it is one of the two.
    match = pattern.match(buffer, position, stop)  # type: ignore[call-overload]
    return -1 if match is None else int(match.end())


def depth_and_containers(text: bytes, max_depth: int, max_count: int) -> tuple[int, int]:
    """The greatest nesting and the number of containers; stops counting beyond either limit.

    The text need not be valid: what is no JSON is counted somehow, and refused by the parser afterwards.
    """
    depth = deepest = count = position = 0
    end = len(text)
    match = _TO_BRACKET.match
    while deepest <= max_depth and count <= max_count:
        position = match(text, position).end()  # type: ignore[union-attr]
        if position >= end:
            break
        byte = text[position]
        if byte == _QUOTE:
            position = closing_quote(text, position + 1, end)
            if position < 0:
                break
        elif byte in _OPENING:
            depth += 1
            count += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
        position += 1
    return deepest, count


def locate(text: bytes, pointers: tuple[Pointer, ...]) -> dict[Pointer, ValueSpan]:
    """Spans of the values that the pointers name; pointers to nothing are left out."""
    wanted = _Wanted()
    for pointer in pointers:
        node = wanted
        for step in pointer:
            node = node.steps.setdefault(step, _Wanted())
        node.pointer = pointer
    found: dict[Pointer, ValueSpan] = {}
    _value(text, _end(_SPACE, text, 0), wanted, found)
    return found


def _value(text: bytes, start: int, wanted: _Wanted, found: dict[Pointer, ValueSpan]) -> int:
    """Visit the value at ``start``, note what is wanted in it, return its end. Recursion is as deep as the pointers."""
    members: tuple[MemberSpan, ...] | None = None
    if text[start] == _BRACE:
        stop, members = _object(text, start, wanted, found)
    elif text[start] == _BRACKET and wanted.steps:
        stop = _array(text, start, wanted, found)
    else:
        stop = _skip(text, start)
    if wanted.pointer is not None:
        found[wanted.pointer] = ValueSpan(Span(start, stop), members)
    return stop


def _object(
    text: bytes, start: int, wanted: _Wanted, found: dict[Pointer, ValueSpan]
) -> tuple[int, tuple[MemberSpan, ...]]:
    members: list[MemberSpan] = []
    left = len(wanted.steps)
    position = _end(_SPACE, text, start + 1)
    while text[position] == _QUOTE:
        if not left and wanted.pointer is None:
            return _close(text, position), ()
        key_start = position
        head = _KEY_AND_COLON.match(text, position)
        if head is not None:
            key, position = head[1].decode(), head.end()
        else:
            key_stop = _string_stop(text, position)
            key = str(json.loads(text[key_start:key_stop]))
            position = _end(_SPACE, text, _end(_SPACE, text, key_stop) + 1)
        inner = wanted.steps.get(key)
        left -= inner is not None
        stop = _skip(text, position) if inner is None else _value(text, position, inner, found)
        members.append(MemberSpan(key, key_start, Span(position, stop)))
        position = _end(_TO_NEXT, text, stop)
    return position + 1, tuple(members)


def _array(text: bytes, start: int, wanted: _Wanted, found: dict[Pointer, ValueSpan]) -> int:
    position = _end(_SPACE, text, start + 1)
    index, last = 0, max((step for step in wanted.steps if isinstance(step, int)), default=-1)
    while index <= last and text[position] not in b"]":
        inner = wanted.steps.get(index)
        stop = _skip(text, position) if inner is None else _value(text, position, inner, found)
        position = _end(_TO_NEXT, text, stop)
        index += 1
    return _close(text, position)


def _skip(text: bytes, start: int) -> int:
    flat = _FLAT_VALUE.match(text, start)
    if flat is not None:
        return flat.end()
    return _string_stop(text, start) if text[start] == _QUOTE else _close(text, start + 1)


def _close(text: bytes, position: int) -> int:
    """The end of the container in which ``position`` stands (between its values)."""
    depth = 1
    while depth:
        position = _end(_TO_BRACKET, text, position)
        if text[position] == _QUOTE:
            position = _string_stop(text, position)
        else:
            depth += 1 if text[position] in _OPENING else -1
            position += 1
    return position


def _string_stop(text: bytes, start: int) -> int:
    return closing_quote(text, start + 1, len(text)) + 1


def _end(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None, "the text was parsed before"
    return match.end()
