"""W3C trace context: read the trace id of an exchange. The header itself is passed on untouched.

Decided here: what counts as a valid ``traceparent`` (W3C Trace Context, level 1, §3.2). Spans are not made here.
"""

from __future__ import annotations

import re

_TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_id(traceparent: str) -> str | None:
    """The 32 hex digits, or ``None`` for a header that is malformed or all zero."""
    found = _TRACEPARENT.match(traceparent.strip())
    if found is None or set(found[1]) == {"0"}:
        return None
    return found[1]
