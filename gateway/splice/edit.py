"""Operations on single values of a body, and the body with their effects as chunks.

Decided here: which bytes an operation replaces, so that the result is valid JSON and every other byte stays as it came.
Not decided here: which operations a request needs (``journey``). New members go to the end of their object; a member
that is removed takes one comma with it. No byte of the body is copied: chunks are views of it, or the caller's bytes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from gateway.splice.scan import MemberSpan, ValueSpan
from gateway.splice.skeleton import Skeleton
from gateway.types import Json, LongString, Pointer, Span
from gateway.types.per_request import per_request

Chunk: TypeAlias = "bytes | memoryview"


@dataclass(frozen=True, slots=True)
class SetString:
    """Make the value a string. ``content`` is ASCII that stands between quotes as it is (data URLs, hex, names)."""

    pointer: Pointer
    content: Chunk


@dataclass(frozen=True, slots=True)
class SetValue:
    """Make the value this JSON, given in pieces."""

    pointer: Pointer
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Wrap:
    """Put JSON around the value as it stands: ``before`` and ``after`` make it, say, the member of a new object."""

    pointer: Pointer
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class SetMember:
    """Give the object at ``pointer`` this member, or the member another value. ``value`` is JSON."""

    pointer: Pointer
    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Take the member from the object at ``pointer``; nothing happens where it has none."""

    pointer: Pointer
    key: str


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Put a further element behind the one at ``pointer`` in its list; several for one place stand in their order."""

    pointer: Pointer
    chunks: tuple[Chunk, ...]


Operation: TypeAlias = "SetString | SetValue | Wrap | SetMember | RemoveMember | InsertAfter"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a span of the buffer by chunks. An empty span inserts."""

    span: Span
    chunks: tuple[Chunk, ...]


@per_request(frozen=True, slots=True)
class Spliced:
    """A new body. ``chunks`` are to be sent in order; views of the old body stay valid only as long as it does."""

    chunks: list[bytes | memoryview]
    byte_count: int


def rename_model(model: str) -> SetMember:
    """The operation that gives the request another model name."""
    return SetMember((), "model", json.dumps(model).encode())


@dataclass(slots=True)
class _MemberChanges:
    values: dict[str, bytes] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


def edit(skeleton: Skeleton, operations: Sequence[Operation]) -> tuple[Edit, ...]:
    """The operations' effects on the body, in order of place and disjoint.

    Two operations on one member: the later one counts. Raises ValueError (a bug of the caller) for a pointer to
    nothing, a member of what is no object, or an operation inside a value that another one replaces or removes.
    """
    if not operations:
        return ()
    values: dict[Pointer, SetString | SetValue | Wrap] = {}
    members: defaultdict[Pointer, _MemberChanges] = defaultdict(_MemberChanges)
    further: defaultdict[Pointer, list[Chunk]] = defaultdict(list)
    for operation in operations:
        match operation:
            case SetString() | SetValue() | Wrap():
                values[operation.pointer] = operation
            case SetMember(pointer, key, value):
                members[pointer].values[key] = value
                members[pointer].removed.discard(key)
            case RemoveMember(pointer, key):
                members[pointer].removed.add(key)
                members[pointer].values.pop(key, None)
            case InsertAfter(pointer, chunks):
                further[pointer] += (b",", *chunks)
            case _:
                assert_never(operation)
    spans = _spans(skeleton, [*values, *members, *further])
    edits = [edit for operation in values.values() for edit in _value_edits(operation, _at(spans, operation.pointer))]
    for pointer, changes in members.items():
        edits += _member_edits(_at(spans, pointer), changes, pointer)
    for pointer, pieces in further.items():
        stop = _at(spans, pointer).value.stop
        edits.append(Edit(Span(stop, stop), tuple(pieces)))
    return _in_order(edits)


def _spans(skeleton: Skeleton, pointers: Sequence[Pointer]) -> dict[Pointer, ValueSpan]:
    """Long strings know where they stand; the scan is made only for what else is named."""
    known: dict[Pointer, ValueSpan] = {}
    for pointer in pointers:
        value = _value_at(skeleton.tree, pointer)
        if isinstance(value, LongString):
            known[pointer] = ValueSpan(Span(value.span.start - 1, value.span.stop + 1))
    unknown = [pointer for pointer in pointers if pointer not in known]
    if unknown:
        known.update(skeleton.locate(unknown))
    return known


def _value_at(tree: Json, pointer: Pointer) -> Json:
    value = tree
    for step in pointer:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _at(spans: dict[Pointer, ValueSpan], pointer: Pointer) -> ValueSpan:
    if pointer not in spans:
        raise ValueError(f"no value at {pointer}")
    return spans[pointer]


def _value_edits(operation: SetString | SetValue | Wrap, at: ValueSpan) -> tuple[Edit, ...]:
    match operation:
        case SetString(_, content):
            return (Edit(at.value, (b'"', content, b'"')),)
        case SetValue(_, chunks):
            return (Edit(at.value, chunks),)
        case Wrap(_, before, after):
            start, stop = at.value.start, at.value.stop
            return Edit(Span(start, start), (before,)), Edit(Span(stop, stop), (after,))
        case _:
            assert_never(operation)


def _member_edits(at: ValueSpan, changes: _MemberChanges, pointer: Pointer) -> list[Edit]:
    if at.members is None:
        raise ValueError(f"no object at {pointer}")
    present = {member.key for member in at.members}
    edits = [Edit(member.value, (changes.values[member.key],)) for member in at.members if member.key in changes.values]
    new = [(key, value) for key, value in changes.values.items() if key not in present]
    return edits + _removals_and_insertion(at, at.members, changes.removed, new)


def _removals_and_insertion(
    at: ValueSpan, members: tuple[MemberSpan, ...], removed: set[str], new: list[tuple[str, bytes]]
) -> list[Edit]:
    """A removed member goes with all up to the next one that stays; at the end, with all from the last that stays."""
    edits: list[Edit] = []
    run_start: int | None = None
    last_kept: MemberSpan | None = None
    for member in members:
        if member.key in removed:
            run_start = member.key_start if run_start is None else run_start
            continue
        if run_start is not None:
            edits.append(Edit(Span(run_start, member.key_start), ()))
            run_start = None
        last_kept = member
    spelt = b",".join(json.dumps(key).encode() + b":" + value for key, value in new)
    if last_kept is not None:
        tail_start = last_kept.value.stop
        insertion = b"," + spelt if spelt else b""
    else:
        tail_start = at.value.start + 1 if run_start is None else run_start
        insertion = spelt
    tail_stop = tail_start if run_start is None else members[-1].value.stop
    if insertion or tail_stop > tail_start:
        edits.append(Edit(Span(tail_start, tail_stop), (insertion,) if insertion else ()))
    return edits


def _in_order(edits: list[Edit]) -> tuple[Edit, ...]:
    # An insertion at the end of a value comes after that value's own edit and before whatever is removed behind it.
    ordered = sorted(edits, key=lambda each: (each.span.start, each.span.stop))
    reached = 0
    for each in ordered:
        if each.span.start < reached:
            raise ValueError("one operation lies inside a value that another one changes")
        reached = each.span.stop
    return tuple(ordered)


def splice(view: Callable[[int, int], memoryview], start: int, stop: int, edits: Sequence[Edit]) -> Spliced:
    """The body ``start..stop`` with the edits (in order and disjoint) made. ``view`` gives bytes without copying."""
    chunks: list[bytes | memoryview] = []
    position = byte_count = 0
    position = start
    for each in edits:
        if each.span.start > position:
            chunks.append(view(position, each.span.start))
        chunks += (chunk for chunk in each.chunks if len(chunk))
        position = each.span.stop
    if stop > position:
        chunks.append(view(position, stop))
    byte_count = sum(len(chunk) for chunk in chunks)
    return Spliced(chunks, byte_count)
