"""Request bodies: skeletons against Python's own parser, splices against the tree they mean, every chat API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gateway.dialects import DIALECTS
from gateway.errors import GatewayError
from gateway.media.shm import HeapBody
from gateway.splice.edit import Operation, RemoveMember, SetMember, SetString, SetValue, edit, splice
from gateway.splice.skeleton import Skeleton, cut
from gateway.types import LongString, Pointer
from tests.fuzz.targets.target import Target, documented

# A body may be refused as one of these.
_REFUSALS = frozenset({"not_json", "invalid_request", "too_complex"})


def skeleton(data: bytes) -> None:
    """What is cut reads as Python's parser reads it; what that does not read is refused."""
    made = _made(data)
    if isinstance(made, str):
        assert made in _REFUSALS
        assert made != "not_json" or not _is_plain_object(data), "a JSON object was refused as none"
        return
    strings = list(_long_strings(made.tree))
    if any(string.text_byte_count is None for string in strings):
        return  # data URLs are left to the worker that decodes them
    assert _filled(made.tree, data) == json.loads(data.decode())
    for string in strings:
        assert data[string.span.start - 1 : string.span.start] == data[string.span.stop : string.span.stop + 1] == b'"'
    _splice(made, data)


def _made(data: bytes) -> Skeleton | str:
    try:
        return cut(data, 0, len(data))
    except GatewayError as error:
        documented(error)
        return error.code


def dialects(data: bytes) -> None:
    """Every chat API reads a request or refuses it, and passes over an answer that is none."""
    for dialect in DIALECTS:
        dialect.usage(data, streamed=False)
        dialect.usage(data, streamed=True)
    made = _made(data)
    if isinstance(made, str):
        return
    for dialect in DIALECTS:
        dialect.answer(made.tree)
        try:
            dialect.read(made.tree)
        except GatewayError as error:
            documented(error)


def _splice(made: Skeleton, data: bytes) -> None:
    """A body with no edits is the body; with one, it is the tree with the same edit."""
    body = HeapBody(data)
    assert _joined(body, made, []) == data
    tree = json.loads(data.decode())
    for operation in _operations(made.tree):
        wanted = json.loads(data.decode())
        _apply(wanted, operation)
        assert json.loads(_joined(body, made, [operation]).decode()) == wanted, operation
    assert tree == json.loads(data.decode())


def _joined(body: HeapBody, made: Skeleton, operations: list[Operation]) -> bytes:
    spliced = splice(body.view, body.start, body.stop, edit(made, operations))
    joined = b"".join(spliced.chunks)
    assert len(joined) == spliced.byte_count
    return joined


def _operations(tree: Any) -> Iterator[Operation]:
    """A few, at the first places that there are."""
    yield SetMember((), "added", b"[1]")
    for key in list(tree)[:3]:
        yield RemoveMember((), key)
        yield SetMember((), key, b'{"other":null}')
        yield SetValue((key,), (b"[", b"2]"))
        yield SetString((key,), b"abc")
    for pointer in _pointers(tree, (), 3):
        yield SetString(pointer, b"deep")


def _pointers(value: Any, at: Pointer, depth: int) -> Iterator[Pointer]:
    if depth and isinstance(value, dict | list) and value:
        key, inner = next(iter(value.items())) if isinstance(value, dict) else (len(value) - 1, value[-1])
        yield (*at, key)
        yield from _pointers(inner, (*at, key), depth - 1)


def _apply(tree: Any, operation: Operation) -> None:
    match operation:
        case SetMember((), key, value):
            tree[key] = json.loads(value)
        case RemoveMember((), key):
            tree.pop(key, None)
        case SetValue(pointer, chunks):
            _put(tree, pointer, json.loads(b"".join(bytes(chunk) for chunk in chunks)))
        case SetString(pointer, content):
            _put(tree, pointer, bytes(content).decode())


def _put(tree: Any, pointer: Pointer, value: object) -> None:
    for step in pointer[:-1]:
        tree = tree[step]
    tree[pointer[-1]] = value


def _is_plain_object(data: bytes) -> bool:
    def no_constant(name: str) -> None:
        raise ValueError(name)

    try:
        return isinstance(json.loads(data.decode(), parse_constant=no_constant), dict)
    except (ValueError, RecursionError):
        return False


def _long_strings(value: Any) -> Iterator[LongString]:
    if isinstance(value, LongString):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _long_strings(each)


def _filled(value: Any, body: bytes) -> Any:
    if isinstance(value, LongString):
        return json.loads(body[value.span.start - 1 : value.span.stop + 1].decode())
    if isinstance(value, dict):
        return {key: _filled(each, body) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, body) for each in value]
    return value


TARGETS = (
    Target("skeleton", "JSON bodies: cut and spliced, against Python's parser", skeleton, ("gateway.splice",)),
    Target("dialects", "requests and answers of every chat API", dialects, ("gateway.dialects",)),
)
