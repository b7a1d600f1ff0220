"""How many bytes of text a template will see of a parsed value.

Decided here: what counts as one byte (UTF-8 once escapes are resolved). Not decided here: tokens (``models``).
"""

from __future__ import annotations

import json

from gateway.types import Json, LongString


def text_bytes(value: Json) -> int:
    """UTF-8 bytes of a string; 0 for everything else. Half a surrogate pair counts as the three bytes it would be."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, LongString):
        return value.span.byte_count if value.text_byte_count is None else value.text_byte_count
    return 0


def json_bytes(value: Json) -> int:
    """Bytes of a value spelt as JSON with Python's separators, as templates print tool schemas (``tojson``)."""
    long_bytes = 0

    def stand_in(string: object) -> str:
        nonlocal long_bytes
        assert isinstance(string, LongString)
        long_bytes += text_bytes(string)
        return ""

    spelt = json.dumps(value, ensure_ascii=False, default=stand_in)
    return text_bytes(spelt) + long_bytes
