"""What a request asked for, in the access line: sizes and counts, enough to replay it under other policies.

Decided here: the compact form, and that it is bounded. Never a payload: formats and levels of detail are words of ours,
everything else is a number. Not decided here: what is done with it (``replay``).

An image is one string, ``jpeg 4032x3024 3100000`` (upright pixels, bytes of the file), followed by what is not usual:
``frames=12``, ``detail=high``, ``remote``. The newest 128 are listed; ``images`` counts all of the request. Those that
were left out before anybody looked at them are the oldest and not listed either.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.policy.effective import Detail
from gateway.record import AskedFor
from gateway.types import SourceFacts

MAX_SOURCES = 128
_DETAILS = frozenset(word.value for word in Detail)


def asked_line(asked: AskedFor, sources: Sequence[SourceFacts]) -> dict[str, object]:
    """The member ``asked`` of the access line; what is nothing or not known is left out."""
    line: dict[str, object] = {"messages": asked.messages, "text_bytes": asked.text_bytes}
    if asked.images:
        line["images"] = asked.images
        if asked.max_pixels is not None:
            line["max_pixels"] = asked.max_pixels
    if asked.videos:
        line["videos"] = asked.videos
    if asked.audios:
        line["audios"] = asked.audios
    if asked.output_limit_tokens is not None:
        line["output_limit"] = asked.output_limit_tokens
    if asked.choices > 1:
        line["choices"] = asked.choices
    if asked.has_tools:
        line["tools"] = True
    if asked.context_tokens is not None:
        line["context"] = asked.context_tokens
    if sources:
        details = asked.details[-len(sources) :]
        pairs = list(zip(sources, details, strict=False))[-MAX_SOURCES:]
        line["sources"] = [_source(facts, detail) for facts, detail in pairs]
    return line


def _source(facts: SourceFacts, detail: str | None) -> str:
    probe = facts.probe
    told = f"{probe.format.value} {probe.upright} {facts.byte_count}"
    if probe.frames > 1:
        told += f" frames={probe.frames}"
    if detail in _DETAILS:
        told += f" detail={detail}"
    return f"{told} remote" if facts.remote else told
