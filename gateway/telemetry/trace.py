"""W3C trace context: read the trace id of an exchange. The header itself is passed on untouched.

Decided here: what counts as a valid ``traceparent`` (W3C Trace Context, level 1, §3.2). Spans are not made here.
"""

from __future__ import annotations

import re

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def trace_id(traceparent: str) -> str | None:
    """The 32 hex digits, or ``None`` for a header that the recommendation calls invalid.

    Version ff is forbidden, an all-zero id means none, and only versions after 00 may go on behind the flags.
    """
    found = _TRACEPARENT.fullmatch(traceparent.strip())
    if found is None:
        return None
    version, trace, parent, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    return None if set(trace) == {"0"} or set(parent) == {"0"} else str(trace)
