"""What a worker does with videos and sounds: reads headers, samples frames, writes data URLs.

Decided here: how a clip's failures are worded and which of them leave it usable as a file. Not decided here: what a
policy makes of that. Runs in image workers only.
"""

from __future__ import annotations

from gateway.errors import (
    BadMedia,
    GatewayError,
    ImageTooLarge,
    InvalidRequest,
    MediumTooLarge,
    MediumUndecodable,
    MediumUnsupported,
    Undecodable,
    UnsupportedFormat,
)
from gateway.media.clip_source import ClipFile, of_file, read_clip
from gateway.media.codecs.probe import probe_all
from gateway.media.messages import ExamineClip, PrepareClip
from gateway.media.sound import probe_sound
from gateway.media.video import EXTRA, VideoLibrary
from gateway.types import ClipProbe, Container, MediumKind, Size

# Beyond these a file's header cannot be understood, and yet its bytes can be passed on.
_FLAWS = (MediumUndecodable, MediumUnsupported)


def read(question: ExamineClip | PrepareClip, view: memoryview) -> ClipFile:
    """The clip's file. Raises MediumTooLarge, MediumUndecodable, InvalidRequest."""
    source = question.source
    try:
        if not source.is_text:
            if source.length > question.max_bytes:
                raise ImageTooLarge
            return of_file(bytes(view))
        return read_clip(view, has_escapes=source.has_escapes, is_bare=question.is_bare, max_bytes=question.max_bytes)
    except GatewayError as error:
        raise about_clip(error, question.kind, question.max_bytes) from None


def about_clip(error: GatewayError, kind: MediumKind, max_bytes: int) -> GatewayError:
    """The same failure in words about a video or a sound."""
    noun = "video" if kind is MediumKind.VIDEO else "sound"
    match error:
        case ImageTooLarge():
            return MediumTooLarge(f"The {noun} has more than {max_bytes} bytes.", rule=f"max_{kind.value}_bytes")
        case MediumUndecodable() | MediumUnsupported() | MediumTooLarge():
            return error
        case Undecodable() | UnsupportedFormat():
            return MediumUndecodable(error.message.replace("image", noun), detail=error.detail)
        case BadMedia() | InvalidRequest():
            words = error.message.replace("Images", f"{noun.capitalize()}s").replace("image", noun)
            return type(error)(words, rule=error.rule, detail=error.detail, retry_after_s=error.retry_after_s)
        case _:
            return error


def probed(file: ClipFile, kind: MediumKind, max_pixels: int, library: VideoLibrary | None) -> tuple[ClipProbe, str]:
    """What the header says, and the code of what keeps it from being understood (empty when nothing does).

    Raises MediumTooLarge.
    """
    try:
        if file.container is Container.FRAMES:
            return _probed_frames(file, max_pixels), ""
        if kind is MediumKind.AUDIO:
            return probe_sound(file.data, file.container), ""
        if library is None:
            raise MediumUnsupported(f"Videos are read by the extra {EXTRA!r}, which is not installed.")
        return library.probe(file.data, file.container, max_pixels), ""
    except _FLAWS as error:
        return ClipProbe(file.container), error.code


def _probed_frames(file: ClipFile, max_pixels: int) -> ClipProbe:
    """Frames as the client sampled them; all of one size, or the engine cannot stack them."""
    sizes: set[Size] = set()
    for part in file.parts:
        try:
            sizes.add(probe_all(part).upright)
        except BadMedia:
            raise MediumUndecodable("A frame of the video is no image.") from None
    if len(sizes) != 1:
        raise MediumUndecodable("The video's frames are of different sizes.")
    size = sizes.pop()
    if size.pixels > max_pixels:
        raise MediumTooLarge(f"The video has {size} pixels; at most {max_pixels} are accepted.")
    return ClipProbe(Container.FRAMES, None, size, len(file.parts), 0.0, "jpeg")


def prepared(question: PrepareClip, file: ClipFile, library: VideoLibrary | None) -> tuple[str, list[bytes], Size]:
    """Media type, the files to write (several only for frames), and their size in pixels.

    Raises MediumUndecodable, MediumUnsupported, MediumTooLong.
    """
    plan = question.plan
    if plan.target is None:
        return file.container.media_type, [file.data], Size(0, 0)
    if library is None:
        raise MediumUnsupported(f"Videos are read by the extra {EXTRA!r}, which is not installed.")
    frames = library.frames(file.data, question.probe, plan, question.deadline_s)
    return Container.FRAMES.media_type, frames, plan.target
