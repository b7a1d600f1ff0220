"""Videos on the command line: what they cost by size and length, and what an engine would get of a file.

Decided here: how a clip is written (``1280x720:60s``, ``1280x720:60s@24``), and what a row says. Not decided here: any
number (``models``), which frames are taken and what they become (``clips``, the Clips port).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pybase64

from gateway.errors import GatewayError
from gateway.media import video
from gateway.media.clip_source import sniffed
from gateway.media.codecs.probe import sniff
from gateway.media.shm import HeapBody
from gateway.models.book import ServedModel
from gateway.models.video import Clip, processed_size, rules_of, video_tokens
from gateway.policy.effective import EffectivePolicy
from gateway.ports import Clips
from gateway.splice.edit import SetString
from gateway.stages.clips import ClipWork
from gateway.stages.exchange import World
from gateway.types import (
    BackendName,
    BackendView,
    Call,
    Container,
    EngineKind,
    LongString,
    MediumKind,
    OtherMedium,
    Size,
    Span,
)

_CLIP = re.compile(r"^(\d{1,5})[xX×](\d{1,5}):(\d{1,6}(?:\.\d+)?)s(?:@(\d{1,3}(?:\.\d+)?))?$")
_USUAL_FRAMES_PER_S = 30.0
_VIDEOS = frozenset({Container.MP4, Container.MOV, Container.WEBM, Container.MATROSKA, Container.AVI})
_MAX_PIXELS = 10**9


@dataclass(frozen=True, slots=True)
class ProcessedClip:
    """``file`` are the frames one behind the other (Motion JPEG), or the file as it came."""

    row: dict[str, object]
    file: bytes
    suffix: str


def is_video(head: bytes) -> bool:
    """Whether a file is a video by its first bytes; GIF, AVIF and HEIC count as images."""
    return sniff(head) is None and sniffed(head) in _VIDEOS


def read_clip(text: str) -> Clip | None:
    """A clip as it is written, or a video file's; ``None`` for what is neither. Raises GatewayError (a broken file)."""
    given = _CLIP.match(text)
    if given:
        rate = float(given[4] or _USUAL_FRAMES_PER_S)
        return Clip(Size(int(given[1]), int(given[2])), max(1, round(float(given[3]) * rate)), rate)
    path = Path(text)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(64)
    library = video.load() if is_video(head) else None
    if library is None:
        return None
    probe = library.probe(path.read_bytes(), sniffed(head), _MAX_PIXELS)
    assert probe.size is not None
    return Clip(probe.size, probe.frames, probe.frames_per_s)


def clip_row(text: str, clip: Clip, served: ServedModel) -> dict[str, object]:
    """What a clip costs as a file, by the model's own sampling rule."""
    seconds = clip.frames / clip.frames_per_s if clip.frames_per_s else 0.0
    row: dict[str, object] = {"image": text, "model": served.name, "size": f"{clip.size} {seconds:g} s"}
    rules = rules_of(served.checkpoint)
    if rules is None:
        message = "How this model samples videos is not known."
        return row | {"error": "medium_unsupported", "target": "medium_unsupported", "message": message}
    try:
        price = video_tokens(clip, served.checkpoint, rules)
        size = processed_size(clip.size, price.sampled_frames, served.checkpoint, rules)
    except (GatewayError, ValueError) as error:
        code = error.code if isinstance(error, GatewayError) else "medium_undecodable"
        return row | {"error": code, "target": code, "message": str(error)}
    return row | {
        "target": f"{size} x {price.sampled_frames}",
        "frames": price.sampled_frames,
        "grid": "x".join(str(side) for side in price.grid),
        "tokens": price.reported_tokens,
        "tokens_original": price.reported_tokens,
        "prompt_tokens": price.prompt_tokens,
        "position_advance": price.position_advance,
        "note": served.match.note,
    }


async def process_clip(name: str, data: bytes, clips: Clips, world: World, policy: EffectivePolicy) -> ProcessedClip:
    """What a vLLM would get of a video under a policy. Raises what the policy or the worker refuses."""
    url = b"data:application/octet-stream;base64," + pybase64.b64encode(data)
    body, source = HeapBody(url), LongString(Span(0, len(url)), has_escapes=False)
    part = OtherMedium(name, True, MediumKind.VIDEO, ("video",), source)
    call = Call(policy.model, False, False, None, (), 0, 1, other_media=(part,))
    view = BackendView(BackendName("vllm"), "", EngineKind.VLLM)
    served = world.book.serve(policy.model or "", (view,))
    work = ClipWork(policy, served, call, (view,))
    findings: list[str] = []
    try:
        await work.look(body, clips, world, findings)
        if not work.items:
            raise GatewayError("Videos are read by the extra 'video' (PyAV), which is not installed.")
        edits = await work.prepare(body, clips, world)
    finally:
        work.close()
    (item,) = work.items
    facts, plan, price = item.facts, item.plan, item.price
    files = [data]
    for edit in edits:
        assert isinstance(edit, SetString)
        files = [pybase64.b64decode(piece) for piece in bytes(edit.content).partition(b",")[2].split(b",")]
    row: dict[str, object] = {
        "image": name,
        "bytes": len(data),
        "original": f"{facts.probe.size} x {facts.probe.frames}",
        "delivered": f"{facts.probe.size} x {facts.probe.frames}" if plan is None else f"{plan.target} x {len(files)}",
        "bytes_delivered": sum(map(len, files)),
        "tokens": None if price is None else price.prompt_tokens,
        "format": "frames" if plan is not None else facts.probe.container.value,
        "changes": [] if plan is None else ["frames"],
        "why": "frames" if plan is not None else "passed untouched",
    }
    suffix = "mjpeg" if plan is not None else facts.probe.container.value
    return ProcessedClip(row, b"".join(files), suffix)
