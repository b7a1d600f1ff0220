"""W3C trace context: whose trace an exchange belongs to, and whether it is sampled.

Decided here: what counts as a valid ``traceparent`` (W3C Trace Context, level 1, §3.2), that a client's decision to
sample is followed, and which share of the other exchanges is sampled. Where traces are not made the header is read for
the log and passed on untouched. Not decided here: what spans say (`span_facts`), where they go (`spans`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway.record import RequestHead, TraceContext

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class SpanTally:
    """Exchanges whose spans were sent, could not be sent, or found no room in the line."""

    sent: int
    failed: int
    dropped: int


NO_SPANS = SpanTally(0, 0, 0)


def trace_id(traceparent: str) -> str | None:
    """The 32 hex digits, or ``None`` for a header that the recommendation calls invalid."""
    read = _read(traceparent)
    return None if read is None else read[0]


def _read(traceparent: str) -> tuple[str, str, bool] | None:
    """Trace, parent, whether it is sampled.

    Version ff is forbidden, an all-zero id means none, and only versions after 00 may go on behind the flags.
    """
    found = _TRACEPARENT.fullmatch(traceparent.strip())
    if found is None:
        return None
    version, trace, parent, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    if set(trace) == {"0"} or set(parent) == {"0"}:
        return None
    return trace, parent, bool(int(flags, 16) & _SAMPLED)


def begin_trace(
    head: RequestHead, sample_ratio: float, draw: Callable[[int], int] = random.getrandbits
) -> TraceContext:
    """The exchange's place in its client's trace, or in one that begins here. ``draw(bits)`` gives random bits.

    As OpenTelemetry's ``parentbased_traceidratio``: below ``sample_ratio`` of the trace id's lower 64 bits is sampled,
    so that all who sample by the same share agree.
    """
    given = head.header("traceparent")
    read = None if given is None else _read(given)
    if read is not None:
        trace, parent, sampled = read
        return TraceContext(trace, _hex(draw, 64), _hex(draw, 64), parent, sampled)
    own = draw(128) or 1
    sampled = own & (2**64 - 1) < round(sample_ratio * 2**64)
    return TraceContext(f"{own:032x}", _hex(draw, 64), _hex(draw, 64), None, sampled)


def _hex(draw: Callable[[int], int], bits: int) -> str:
    return f"{draw(bits) or 1:0{bits // 4}x}"


def with_trace(head: RequestHead, sample_ratio: float) -> RequestHead:
    """The head with its place in a trace."""
    trace = begin_trace(head, sample_ratio)
    return replace(head, trace=trace, trace_id=trace.trace_id)
