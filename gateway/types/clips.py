"""A video or a sound on its way: what its header says, what is planned for it. Neighbours of ``media``'s images.

Decided here: names and units; sizes are pixels after rotation, durations seconds. Not decided here: how a header is
read (``media.video``, ``media.sound``), which frames are taken (``models.video``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.types.media import Size
from gateway.types.names import ContentDigest, PlacementDigest


class MediumKind(StrEnum):
    """What a part that is no image holds. ``file``: a document, which only the engine reads."""

    VIDEO = "video"
    AUDIO = "audio"
    FILE = "file"


class Container(StrEnum):
    """File formats of videos and sounds, by magic bytes. ``frames``: JPEG files, as vLLM takes a sampled video."""

    MP4 = "mp4"
    MOV = "mov"
    WEBM = "webm"
    MATROSKA = "mkv"
    AVI = "avi"
    GIF = "gif"
    FRAMES = "frames"
    WAV = "wav"
    MP3 = "mp3"
    OGG = "ogg"
    FLAC = "flac"
    OTHER = "other"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self]


_MEDIA_TYPES = {
    Container.MP4: "video/mp4",
    Container.MOV: "video/quicktime",
    Container.WEBM: "video/webm",
    Container.MATROSKA: "video/x-matroska",
    Container.AVI: "video/x-msvideo",
    Container.GIF: "image/gif",
    Container.FRAMES: "video/jpeg",
    Container.WAV: "audio/wav",
    Container.MP3: "audio/mpeg",
    Container.OGG: "audio/ogg",
    Container.FLAC: "audio/flac",
    Container.OTHER: "application/octet-stream",
}


@dataclass(frozen=True, slots=True)
class ClipProbe:
    """What a clip's header says. ``duration_s`` None: it does not tell. A sound has no ``size`` and no frames."""

    container: Container
    duration_s: float | None = None
    size: Size | None = None
    frames: int = 0
    frames_per_s: float = 0.0
    codec: str = ""


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """All that is known of one clip once it was looked at; ``flaw`` is the code of what its header was refused with."""

    byte_count: int
    placement: PlacementDigest
    content: ContentDigest
    probe: ClipProbe
    flaw: str | None = None
    remote: bool = False


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """What will be done to one clip: the only input besides its bytes that the worker's output depends on.

    ``indices`` are the frames taken, by their number in the clip; empty = the file's own bytes in a data URL.
    ``version`` names the decoder's and encoder's versions: same source + same plan = same bytes everywhere.
    """

    version: str
    target: Size | None = None
    indices: tuple[int, ...] = ()
    jpeg_quality: int = 90

    @property
    def keeps_file(self) -> bool:
        return not self.indices


@dataclass(frozen=True, slots=True)
class PreparedClip:
    """One clip as a backend gets it: the whole data URL as ASCII, safe inside a JSON string without escaping.

    ``frames`` 0: the file itself, and ``size`` says nothing then. ``file_byte_count`` is of the file, or of all frames.
    """

    data_url: bytes
    size: Size
    frames: int
    file_byte_count: int
