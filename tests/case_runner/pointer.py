"""JSON of the cases: pointers (RFC 6901), duplicate keys, numbers as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

MISSING: Any = object()
_ADDITIONS = {"cache_salt", "content_hash"}
_PICTURE_KEYS = ("image_url", "input_image", "image")


class DuplicateKey(Exception):
    """An object names a key twice."""


def parse(text: bytes | str) -> Any:
    """JSON with numbers kept exact (Decimal for what is no integer). Raises ValueError."""
    return json.loads(text, parse_float=Decimal)


def parsed(text: bytes | str) -> Any:
    """The same, with MISSING for what is no JSON."""
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return MISSING


def check_no_duplicates(text: bytes) -> None:
    """Raises DuplicateKey naming the first key that an object has twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            raise DuplicateKey(next(name for name in names if names.count(name) > 1))
        return made

    json.loads(text, object_pairs_hook=unique)


def tokens(pointer: str) -> list[str]:
    """A pointer's steps."""
    return [each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:]]


def look_up(document: Any, pointer: str) -> Any:
    """The value at a pointer, or MISSING."""
    found = document
    for token in tokens(pointer):
        if isinstance(found, dict) and token in found:
            found = found[token]
        elif isinstance(found, list) and token.isdigit() and int(token) < len(found):
            found = found[int(token)]
        else:
            return MISSING
    return found


def put(document: Any, pointer: str, value: Any) -> None:
    """Set the value at a pointer whose parent exists; in an object the last key may be new."""
    *way, last = tokens(pointer)
    parent = look_up(document, "".join("/" + each.replace("~", "~0").replace("/", "~1") for each in way))
    if isinstance(parent, list):
        parent[int(last)] = value
    else:
        parent[last] = value


def without(document: Any, pointers: list[str]) -> Any:
    """A copy in which the values at these pointers are one and the same."""
    copy = json.loads(json.dumps(document, default=_plain), parse_float=Decimal)
    for pointer in pointers:
        if look_up(copy, pointer) is not MISSING:
            put(copy, pointer, "*")
    return copy


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value.normalize())}
    raise TypeError(type(value).__name__)


def is_picture(value: Any) -> bool:
    """Whether an object is a picture part of one of the chat APIs."""
    return isinstance(value, dict) and (value.get("type") in _PICTURE_KEYS)


def pictures(document: Any) -> Iterator[dict[str, Any]]:
    """Every picture part of a body, in its order."""
    if is_picture(document):
        yield document
    elif isinstance(document, dict):
        for value in document.values():
            yield from pictures(value)
    elif isinstance(document, list):
        for value in document:
            yield from pictures(value)


def without_additions(document: Any) -> Any:
    """A copy without what a gateway sets for the engine: uuid beside a picture, cache_salt, content_hash."""
    if isinstance(document, dict):
        left_out = _ADDITIONS | ({"uuid"} if is_picture(document) else set())
        return {key: without_additions(value) for key, value in document.items() if key not in left_out}
    if isinstance(document, list):
        return [without_additions(value) for value in document]
    return document
