"""A stream's usage asked for on a client's behalf, to settle budgets by it, and taken out of the answer again.

Decided here: which requests are asked about (streams of OpenAI's two completion APIs whose clients did not ask, by
policy), and which event is the answer to it: the one without choices that has usage, as vLLM and SGLang send it before
``[DONE]``. All other bytes, comments included, pass as they come; only what an event lacks to be whole is waited for.
Not decided here: where usage is read (``dialects``), what is done with it (``delivery``).

Not asked about: a client that set ``continuous_usage_stats``, for which the same option would change every event.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from gateway.dialects.sse import BOUNDARY, DATA
from gateway.policy.effective import EffectivePolicy, StreamUsage
from gateway.types import Call, HeaderList, JsonObject, Pointer

_DIALECTS = frozenset({"openai_chat", "openai_completions"})
_COMMENT = re.compile(rb"(?:^|(?<=[\r\n])):[^\r\n]*(?:\r\n|\n|\r)")
# No event of an engine's is so long; what is goes on as it is.
_MOST_BYTES = 16 * 1024 * 1024


def with_usage(policy: EffectivePolicy, dialect: str, call: Call, tree: JsonObject) -> Call:
    """The call that asks for its usage where the policy says so; the same where there is nothing to ask."""
    if policy.stream_usage is not StreamUsage.SETTLE or policy.shadow:
        return call
    if call.wants_usage or not call.stream or dialect not in _DIALECTS:
        return call
    asked: tuple[Pointer, str, bytes]
    options = tree.get("stream_options")
    if isinstance(options, dict):
        if options.get("continuous_usage_stats"):
            return call
        asked = (("stream_options",), "include_usage", b"true")
    elif options is None:
        asked = ((), "stream_options", b'{"include_usage":true}')
    else:
        return call  # misshapen: the engine's to refuse
    return replace(call, additions=(*call.additions, asked), hides_usage=True)


class UsageStripper:
    """One stream's way through. ``feed`` and ``finish`` return what may go on."""

    def __init__(self) -> None:
        self._buffer = b""
        self._gave_up = False

    def feed(self, chunk: bytes) -> bytes:
        """The next bytes of the backend's response."""
        if self._gave_up:
            return chunk
        whole = self._buffer + chunk
        ends = [match.end() for match in BOUNDARY.finditer(whole)]
        at = ends[-1] if ends else 0
        self._buffer = whole[at:]
        if len(self._buffer) > _MOST_BYTES:
            self._gave_up, rest, self._buffer = True, self._buffer, b""
            return self._without(whole[:at], ends) + rest
        return self._without(whole[:at], ends)

    def finish(self) -> bytes:
        """The response has come to its end."""
        rest, self._buffer = self._buffer, b""
        return rest

    @staticmethod
    def _without(events: bytes, ends: list[int]) -> bytes:
        if b'"usage"' not in events:
            return events
        kept, start = [], 0
        for end in ends:
            event = events[start:end]
            kept.append(_comments(event) if _is_usage_alone(event) else event)
            start = end
        return b"".join(kept)


def stripper_for(call: Call, status: int, headers: HeaderList) -> UsageStripper | None:
    """What takes the usage out of a response; ``None`` where nobody asked for it or this is no event stream."""
    if not call.hides_usage or status != 200:
        return None
    told = {name.lower(): value.lower() for name, value in headers}
    is_plain = told.get("content-encoding", "identity") == "identity"
    return UsageStripper() if is_plain and told.get("content-type", "").startswith("text/event-stream") else None


def _is_usage_alone(event: bytes) -> bool:
    data = DATA.findall(event)
    if len(data) != 1 or b'"usage"' not in data[0]:
        return False
    try:
        told = json.loads(data[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("choices") == [] and isinstance(told.get("usage"), dict)


def _comments(event: bytes) -> bytes:
    """The comments of an event, as an event of their own; nothing where there are none."""
    comments = b"".join(_COMMENT.findall(event))
    return comments + b"\n" if comments else b""
