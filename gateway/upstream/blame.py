"""Which answers an engine is to blame for, and how long it wants to be left alone. Pure.

A status alone blames nobody: vLLM 0.32 answers 500 and 501 to requests that their client got wrong (a picture above
Pillow's bomb limit, ``file:`` URLs, media that cannot be fetched, broken embeddings), and who counted those would take
backend after backend from everybody for one bad client. So only what an engine says of itself counts, and the statuses
of something in front of it that does not reach it.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

_ENGINE_AWAY = frozenset({502, 503, 504})
# vLLM: v1/engine/exceptions.py (EngineDeadError, and how the front end words it); torch, CUDA and NCCL, as both engines
# pass them on.
_ENGINE_BROKEN = (
    b"EngineCore encountered an issue",
    b"EngineDeadError",
    b"Engine process failed",
    b"CUDA error",
    b"device-side assert",
    b"NCCL error",
)
_ASKS_FOR_REST = frozenset({429, 503})


def is_engines_fault(status: int, head: bytes) -> bool:
    """Whether this answer tells of a broken engine rather than of a request; ``head`` is its body or its beginning."""
    return status in _ENGINE_AWAY or (status >= 500 and any(text in head for text in _ENGINE_BROKEN))


def rest_s(status: int, retry_after: str | None, unix_s: float, limit_s: float) -> float | None:
    """Seconds of rest that a 429 or 503 asks for (RFC 9110 10.2.3: seconds or a date), ``limit_s`` at most."""
    if retry_after is None or status not in _ASKS_FOR_REST:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - unix_s
        except (ValueError, OverflowError):
            return None
    return min(seconds, limit_s) if seconds > 0 else None
