"""Turns one image into another: decode, upright, 8 bit, on a background, resized, encoded. Runs in image workers only.

Importing this package loads no image library; ``load_backend`` does, and ``describe`` through it. Which backend renders
is a setting and part of every plan's version, because two backends make different bytes of the same picture and engines
cache by bytes. Not decided here: what is done to a picture (the plan), memory and time limits (the pool).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Protocol

from gateway.types import ImageFormat, ImagePlan, Probe, Size

PILLOW_SIMD = "pillow-simd"
VIPS = "vips"
_DECODERS = ("numpy", "simplejpeg", "imagecodecs", "kornia_rs", "pyvips", "isal")
# No plain dependency (docs/adr/0002-codec-backends.md).
_WHERE_PIL_IS = " (PIL is Pillow: pip install 'vlm-gateway[pillow]', or pillow-simd by .ci/pillow in a checkout)"


class CodecBackendMissing(Exception):
    """A codec backend that is configured cannot be used here; the message says what is absent."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A finished file. It carries no metadata: no EXIF, no profile, no text."""

    data: bytes
    format: ImageFormat
    size: Size


class CodecBackend(Protocol):
    """One way to render. ``fingerprint`` names backend, library versions and settings: equal means equal bytes."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered:
        """Decode, orient, flatten, resize to ``plan.target``, encode. Same arguments, same bytes.

        Raises Undecodable (cut or damaged data), UnsupportedFormat, MemoryError.
        """
        ...


def _absence(name: str) -> str | None:
    """Why a backend cannot be used, as far as installed packages tell; ``None`` when nothing is missing."""
    if name not in (PILLOW_SIMD, VIPS):
        return f"there is no codec backend of this name (known: {PILLOW_SIMD}, {VIPS})"
    missing = [module for module in (*_DECODERS, "PIL") if find_spec(module) is None]
    if missing:
        return f"these packages are not installed: {', '.join(missing)}{_WHERE_PIL_IS if 'PIL' in missing else ''}"
    if name == PILLOW_SIMD:
        return _simd_absence()
    return None


def _simd_absence() -> str | None:
    try:
        version("pillow-simd")
    except PackageNotFoundError:
        return "PIL is not pillow-simd; build it with .ci/pillow, or set the codec backend to vips"
    try:
        wheel = version("pillow")
    except PackageNotFoundError:
        return None
    return f"Pillow {wheel} was installed over pillow-simd; run .ci/pillow again"


def available_backends() -> tuple[str, ...]:
    """The backends whose packages are installed, the fastest first. Loads no library."""
    return tuple(name for name in (PILLOW_SIMD, VIPS) if _absence(name) is None)


def default_backend() -> str:
    """The fastest backend that is installed. Raises CodecBackendMissing when there is none."""
    found = available_backends()
    if not found:
        raise CodecBackendMissing(f"no codec backend can be used: {_absence(VIPS)}")
    return found[0]


def load_backend(name: str) -> CodecBackend:
    """Load a backend and its libraries. Raises CodecBackendMissing, which a start-up should refuse with."""
    absence = _absence(name)
    if absence is not None:
        raise CodecBackendMissing(f"codec backend {name!r} cannot be used: {absence}")
    try:
        from gateway.media.codecs.preload import preload  # noqa: PLC0415  loads imagecodecs and PIL

        preload()
        if name == PILLOW_SIMD:
            from gateway.media.codecs import pillow_simd  # noqa: PLC0415  loads PIL and pyvips

            return pillow_simd.load()
        from gateway.media.codecs import vips_cubic  # noqa: PLC0415  loads PIL and pyvips

        return vips_cubic.load()
    except (ImportError, OSError) as error:
        raise CodecBackendMissing(f"codec backend {name!r} cannot be used: {error}") from error


def describe() -> dict[str, object]:
    """Backends, library versions, SIMD level and one timed resize, for ``doctor``. Loads the libraries.

    Raises CodecBackendMissing where there is no backend.
    """
    default = default_backend()
    from gateway.media.codecs import inspection  # noqa: PLC0415  loads PIL and pyvips

    return {"available": list(available_backends()), "default": default, **inspection.inspect_libraries()}
