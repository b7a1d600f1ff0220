"""Videos by PyAV (FFmpeg): headers, and frames of a plan. Runs in image workers only; the only door to ``av``.

Importing this package loads no library; ``load`` does. Decided here: how FFmpeg is kept in bounds (the demuxer is named
by our own sniffing, since some demuxers open further files and addresses; few codecs; one thread; a deadline inside).
Not decided here: which frames are taken and how large they become (the plan), memory and processes (the pool).
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Protocol

from gateway.types import ClipPlan, ClipProbe, Container

# The extra's name in the package's metadata.
EXTRA = "video"


class VideoLibrary(Protocol):
    """What a worker asks of it."""

    def probe(self, data: bytes, container: Container, max_pixels: int) -> ClipProbe:
        """Raises MediumUndecodable, MediumUnsupported, MediumTooLarge."""
        ...

    def frames(self, data: bytes, probe: ClipProbe, plan: ClipPlan, deadline_s: float) -> list[bytes]:
        """JPEG files of the plan's frames. Raises MediumUndecodable, MediumTooLong (no time left)."""
        ...


def installed_version() -> str | None:
    """What stands in a plan's version; ``None`` where the extra is not installed. Loads no library."""
    try:
        return f"av{version_of('av')}-jpeg{version_of('simplejpeg')}"
    except PackageNotFoundError:
        return None


def load() -> VideoLibrary | None:
    """Load the library; ``None`` where it is not installed or cannot be loaded."""
    try:
        from gateway.media.video import library  # noqa: PLC0415  loads av
    except ImportError:
        return None
    loaded = library.PyAv()
    library.rehearse(loaded)
    return loaded
