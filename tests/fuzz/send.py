"""How one file goes through the pipeline: looked at, planned for, prepared, as an image, a video or a sound."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass

from gateway.media.service import MediaService
from gateway.media.settings import MIB
from gateway.media.shm import HeapBody
from gateway.ports import Accepts, ClipJob, ClipRef, ClipScope, MediaScope, PrepareJob, SourceRef
from gateway.types import (
    Change,
    ClipPlan,
    Fidelity,
    ImagePlan,
    ImageTokens,
    LongString,
    MediumKind,
    OutputFormat,
    Probe,
    Size,
    Span,
    TenantId,
)
from tests.fuzz.corpus import SOUND, VIDEO

_TENANT = TenantId("fuzz")
_MAX_BYTES = 4 * MIB
# Few pixels: what a worker keeps for the largest picture so far would hide what it loses with every one.
_MAX_PIXELS = 250_000
_PATIENCE_S = 60.0
_TOKENS = ImageTokens(1, 0, 2, (1, 1, 1), 1, 4)
_TYPES = ("image/png", "image/jpeg", "image/webp", "application/octet-stream")
_MAX_SIDE = 256
_MAX_FRAMES = 4


@dataclass(frozen=True, slots=True)
class Input:
    """A damaged file and the name of the seed it was made from, which says how it is sent."""

    number: int
    name: str
    file: bytes


async def send(service: MediaService, given: Input) -> None:
    """Have one file prepared. Raises GatewayError where it is refused, AssertionError for an answer that is none."""
    rng = random.Random(given.number)
    if given.name.startswith((VIDEO, SOUND)):
        await _send_clip(service, given, rng)
    else:
        await _send_image(service, given, rng)


async def _send_image(service: MediaService, given: Input, rng: random.Random) -> None:
    body, where = _data_url(rng.choice(_TYPES), given.file)
    source = SourceRef("image", where)
    accepts = Accepts(documents=True, truncated=rng.random() < 0.5)
    scope = MediaScope(_TENANT, _MAX_BYTES, _MAX_PIXELS, hosts=(), deadline_s=_PATIENCE_S, accepts=accepts)
    looked = await service.look(body, [source], scope)
    try:
        facts = looked.facts[0]
        plan = _plan(facts.probe, rng, service.plan_version)
        (result,) = await service.prepare(body, looked, [PrepareJob(source, facts, plan)], scope)
        assert result.prepared.data_url.startswith(b"data:image/")
        assert result.prepared.size == plan.target
    finally:
        looked.close()


def _plan(probe: Probe, rng: random.Random, version: str) -> ImagePlan:
    size = probe.upright
    shrink = rng.choice((1, 1, 2, 5, 16))
    return ImagePlan(
        original=size,
        target=Size(max(1, min(size.width, _MAX_SIDE) // shrink), max(1, min(size.height, _MAX_SIDE) // shrink)),
        changes=(Change.RESIZED,),
        output=rng.choice(tuple(OutputFormat)),
        jpeg_quality=90,
        background=(255, 255, 255),
        version=version,
        before=_TOKENS,
        after=_TOKENS,
        fidelity=rng.choice(tuple(Fidelity)),
        frame=rng.randrange(min(probe.frames, _MAX_FRAMES)) if probe.frames > 1 else 0,
        to_srgb=rng.random() < 0.5,
        salvage=not probe.complete,
    )


async def _send_clip(service: MediaService, given: Input, rng: random.Random) -> None:
    kind = MediumKind.AUDIO if given.name.startswith(SOUND) else MediumKind.VIDEO
    body, where = _data_url("video/mp4", given.file)
    ref = ClipRef("clip", where, kind, is_bare=False, max_bytes=_MAX_BYTES)
    scope = ClipScope(_TENANT, _MAX_PIXELS, hosts=(), deadline_s=_PATIENCE_S)
    looked = await service.clips.look(body, [ref], scope)
    try:
        facts = looked.facts[0]
        frames = min(facts.probe.frames, 1_000) if facts.flaw is None else 0
        indices = tuple(sorted(rng.randrange(frames) for _ in range(_MAX_FRAMES))) if frames else ()
        plan = ClipPlan(service.clips.version or "", Size(24, 16) if indices else None, indices)
        (clip,) = await service.clips.prepare(body, looked, [ClipJob(ref, facts, plan)], scope)
        assert clip.data_url.startswith(b"data:")
    finally:
        looked.close()


def _data_url(media_type: str, file: bytes) -> tuple[HeapBody, LongString]:
    text = f"data:{media_type};base64,".encode() + base64.b64encode(file)
    return HeapBody(text), LongString(Span(0, len(text)), has_escapes=False)
