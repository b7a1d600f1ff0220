"""Token usage out of the last bytes of a response, without parsing the rest.

Decided here: which objects of a response are its usage, and what the fields are called by vLLM and SGLang in the APIs
that say ``prompt_tokens``. Not decided here: the words of other APIs (their dialects), and what is done when usage is
missing (``journey`` settles by estimate then).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gateway.types import Usage

# The key as JSON spells it. Inside a string it would be followed by an escaped quote, which this does not match.
# Made once: a decoder compiles its scanner when it is made.
_DECODER = json.JSONDecoder()
_KEY = re.compile(rb'"usage"[ \t\r\n]*:[ \t\r\n]*(?=\{)')
# A usage object is some 300 bytes with all its details.
_MAX_USAGE_BYTES = 4096
# More tokens than any request has; a larger number is a mistake of the engine's, and none to compute with.
_MOST_TOKENS = 1_000_000_000
# How many objects of this name are tried, from the last one back.
_MAX_TRIES = 8
# Of objects of another name, which may stand for one answer of many each: as many as a batch's tail can hold.
_MOST_OBJECTS = 256


def usages(tail: bytes) -> Iterator[dict[str, object]]:
    """The complete usage objects, the last one first."""
    return _objects(tail, _KEY, _MAX_TRIES, _MAX_USAGE_BYTES)


def objects_named(tail: bytes, name: str) -> Iterator[dict[str, object]]:
    """The complete objects that stand under a key, the last one first."""
    key = re.compile(rb'"%s"[ \t\r\n]*:[ \t\r\n]*(?=\{)' % re.escape(name.encode()))
    return _objects(tail, key, _MOST_OBJECTS, len(tail))


def _objects(tail: bytes, key: re.Pattern[bytes], tries: int, limit_bytes: int) -> Iterator[dict[str, object]]:
    starts = [match.end() for match in key.finditer(tail)]
    for start in reversed(starts[-tries:]):
        text = tail[start : start + limit_bytes].decode("utf-8", "replace")
        try:
            fields, _ = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict):
            yield fields


def last_usage(tail: bytes) -> Usage | None:
    """The last complete usage object with a prompt count. Streams may carry one per event; only the last is final."""
    for fields in usages(tail):
        usage = _read(fields)
        if usage is not None:
            return usage
    return None


def _read(fields: dict[str, object]) -> Usage | None:
    prompt_tokens = count(fields, "prompt_tokens")
    if prompt_tokens is None:
        return None
    details = fields.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=count(fields, "completion_tokens") or 0,
        cached_tokens=count(details, "cached_tokens"),
        image_tokens=_tokens_of(details, "image"),
        video_tokens=_tokens_of(details, "video"),
    )


def _tokens_of(details: object, modality: str) -> int | None:
    """vLLM: ``multimodal_tokens.image``; SGLang: ``image_tokens``."""
    if not isinstance(details, dict):
        return None
    of_vllm = count(details.get("multimodal_tokens"), modality)
    return count(details, f"{modality}_tokens") if of_vllm is None else of_vllm


def count(fields: object, name: str) -> int | None:
    """A count of tokens; ``None`` where there is none, or none to compute with."""
    value = fields.get(name) if isinstance(fields, dict) else None
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if counts else None
