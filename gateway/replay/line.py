"""Access lines, read back: one typed exchange per line, whatever else stands in the log.

Decided here: what a line must hold, and that what a log collector writes before the JSON is passed over. Not decided
here: what is made of it. Raises BadLine for an exchange that cannot be read; other lines are ``None``.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

import msgspec

from gateway.types import (
    MAX_PAGES,
    ContentDigest,
    ImageFormat,
    Page,
    PlacementDigest,
    Probe,
    Size,
    SourceFacts,
)

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]

_SOURCE = re.compile(
    r"(?P<format>[a-z0-9]{1,16}) (?P<width>\d{1,6})x(?P<height>\d{1,6}) (?P<bytes>\d{1,12})"
    r"(?: frames=(?P<frames>\d{1,6}))?(?: detail=(?P<detail>[a-z]{1,16}))?(?P<remote> remote)?"
)
_FORMATS = {known.value: known for known in ImageFormat}


class BadLine(Exception):
    """An exchange that cannot be read; the message says what is wrong, and where in the line."""


class Estimate(msgspec.Struct, frozen=True):
    text: Count = 0
    image: Count = 0
    prompt: Count = 0
    output: Count = 0


class Images(msgspec.Struct, frozen=True):
    shrunk: Count = 0
    recoded: Count = 0
    omitted: Count = 0
    tokens_original: Count = 0
    patches: Count = 0


class Asked(msgspec.Struct, frozen=True):
    """What the body asked for (``telemetry.asked``)."""

    messages: Count = 0
    text_bytes: Count = 0
    images: Count = 0
    videos: Count = 0
    audios: Count = 0
    output_limit: Count | None = None
    choices: Annotated[int, msgspec.Meta(ge=1, le=2**16)] = 1
    tools: bool = False
    max_pixels: Count | None = None
    context: Count | None = None
    sources: list[str] = []


class Exchange(msgspec.Struct, frozen=True):
    """One line; members that are not needed here are passed over."""

    event: str = ""
    request_id: str = ""
    path: str = ""
    outcome: str = ""
    code: str | None = None
    rule: str | None = None
    tenant: str | None = None
    task: str | None = None
    task_reason: str = ""
    model: str | None = None
    engine: str | None = None
    shadow: bool = False
    asked: Asked | None = None
    images: Images = Images()
    estimate: Estimate | None = None
    findings: list[str] = []
    shadow_image_tokens: Count | None = None
    shadow_changes: dict[str, Count] = {}


class Source(msgspec.Struct, frozen=True):
    """One image as it came, and the level of detail asked for."""

    facts: SourceFacts
    detail: str | None


_decode = msgspec.json.Decoder(Exchange).decode


def read_line(raw: bytes) -> Exchange | None:
    """One line of a log. Raises BadLine."""
    if b'"exchange"' not in raw:
        return None
    start = raw.find(b"{")
    if start < 0:
        return None
    try:
        found = _decode(raw[start:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLine(str(error)) from None
    return found if found.event == "exchange" else None


def read_source(text: str) -> Source:
    """One entry of ``asked.sources``. Raises BadLine."""
    given = _SOURCE.fullmatch(text)
    kind = _FORMATS.get(given["format"]) if given else None
    if given is None or kind is None or not int(given["width"]) or not int(given["height"]):
        raise BadLine(f"{text[:64]!r} is no image such as 'jpeg 4032x3024 3100000' - at `$.asked.sources`")
    size, frames = Size(int(given["width"]), int(given["height"])), int(given["frames"] or 1)
    pages = (Page(size),) * min(frames, MAX_PAGES) if kind.is_document and frames > 1 else ()
    probe = Probe(kind, size, frames=max(1, frames), pages=pages)
    facts = SourceFacts(
        int(given["bytes"]),
        PlacementDigest(b""),
        ContentDigest(b""),
        probe,
        canonical=True,
        remote=bool(given["remote"]),
    )
    return Source(facts, given["detail"])
