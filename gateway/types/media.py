"""An image on its way: what its header says, what is planned for it, what came out.

Decided here: names and units; sizes are pixels *after* orientation unless a name says raster. Not decided here: how any
value is computed (`media`, `models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.types.names import ContentDigest, PlacementDigest
from gateway.types.tokens import ImageTokens


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in pixels."""

    width: int
    height: int

    @property
    def pixels(self) -> int:
        return self.width * self.height

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class ImageFormat(StrEnum):
    """Formats recognised by magic bytes; the data URL's own media type is never believed."""

    JPEG = "jpeg"
    PNG = "png"
    WEBP = "webp"
    GIF = "gif"
    BMP = "bmp"
    TIFF = "tiff"
    AVIF = "avif"
    HEIC = "heic"
    JPEG2000 = "jpeg2000"
    SVG = "svg"
    PDF = "pdf"
    ICO = "ico"

    @property
    def is_document(self) -> bool:
        """Whether several pictures in such a file are pages and not frames."""
        return self in (ImageFormat.TIFF, ImageFormat.PDF)

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES.get(self, f"image/{self.value}")


_MEDIA_TYPES = {
    ImageFormat.JPEG2000: "image/jp2",
    ImageFormat.SVG: "image/svg+xml",
    ImageFormat.PDF: "application/pdf",
    ImageFormat.ICO: "image/x-icon",
}


class ColourModel(StrEnum):
    GREY = "grey"
    RGB = "rgb"
    PALETTE = "palette"
    CMYK = "cmyk"


# Pages of a document that a probe measures, and so the most that a policy can take of one.
MAX_PAGES = 64


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a document: its raster and the orientation it has to be turned by."""

    raster: Size
    orientation: int = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """What an image's header says, before any pixel is decoded.

    ``raster`` is the stored size; ``orientation`` the EXIF value 1..8 (unknown values read as 1). ``complete`` is
    ``False`` where the file's own end mark or declared length is missing, or a PNG's checksum is wrong. ``scans``
    counts JPEG scans (1 = baseline). ``frames`` counts frames of an animation or pages of a document; of a document
    ``pages`` holds the first ones (empty where there is one). ``foreign_profile``: an embedded colour profile that is
    not sRGB.
    """

    format: ImageFormat
    raster: Size
    orientation: int = 1
    frames: int = 1
    bits_per_sample: int = 8
    colour: ColourModel = ColourModel.RGB
    has_alpha: bool = False
    progressive: bool = False
    scans: int = 1
    complete: bool = True
    foreign_profile: bool = False
    pages: tuple[Page, ...] = ()

    @property
    def upright(self) -> Size:
        """The size after orientation: tags 5 to 8 swap the sides."""
        if self.orientation >= 5:
            return Size(self.raster.height, self.raster.width)
        return self.raster


@dataclass(frozen=True, slots=True)
class Detail:
    """What an image would lose by being made smaller, as far as its brightness shows; measured only on request.

    ``pixels``: of the raster that was measured. ``losses``: the squared error, in 1/256 of a grey level squared, that
    halving both sides makes, then halving them again, and so on, each against the one before; busy places count most;
    empty for an image too narrow to be measured. ``text_permille``: places that look like text, of a thousand.
    """

    pixels: int
    losses: tuple[int, ...]
    text_permille: int


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """All that is known of one image source once it has been looked at (stage *fetch*).

    ``canonical`` means that the string in the body is already a data URL with a lower-case scheme and marker, the true
    media type and strict padded base64, so it may be passed byte for byte; ``bare_base64`` that it is the latter alone.
    ``frame`` is the frame or page meant where a policy takes several of one source, each with facts of its own.
    ``detail`` is there once a policy with ``adaptive`` asked for it.
    """

    byte_count: int
    placement: PlacementDigest
    content: ContentDigest
    probe: Probe
    canonical: bool
    remote: bool = False
    bare_base64: bool = False
    frame: int = 0
    detail: Detail | None = None


class Change(StrEnum):
    """Why an image is not passed byte for byte; each is counted by reason."""

    RESIZED = "resized"
    ADAPTED = "adapted"
    ENLARGED = "enlarged"
    ORIENTATION = "orientation"
    FRAMES = "frames"
    BIT_DEPTH = "bit_depth"
    ALPHA = "alpha"
    COLOUR = "colour"
    FORMAT = "format"
    PROFILE = "profile"
    TRUNCATED = "truncated"
    DATA_URL = "data_url"
    REMOTE = "remote"


class OutputFormat(StrEnum):
    """``auto``: JPEG for photographs, PNG for what is drawn (screens, charts, text); the worker decides by content."""

    AUTO = "auto"
    JPEG = "jpeg"
    PNG = "png"


class Fidelity(StrEnum):
    """How much may be lost by decoding fewer pixels than the file has before the resampler makes the target of them.

    ``exact``: at least 45 dB to a full decode and one bicubic resize, on photographs, screens and pages of text.
    ``fast``: at least 40 dB, and a quarter less CPU where the file is three to four times the target.
    """

    EXACT = "exact"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What will be done to one image: the only input besides the source bytes that the worker's output depends on.

    ``changes`` empty = pass the source string untouched; only ``data_url``/``remote`` = the original file bytes in a
    canonical data URL, no pixel decoded; anything else = decode, orient, flatten on ``background``, resize, encode.
    ``version`` names codec backend, library versions and settings: same source + same plan = same bytes everywhere.
    ``frame`` is the frame or page to decode; ``to_srgb`` applies the embedded colour profile; ``salvage`` accepts a
    file that ends too early.
    """

    original: Size
    target: Size
    changes: tuple[Change, ...]
    output: OutputFormat
    jpeg_quality: int
    background: tuple[int, int, int]
    version: str
    before: ImageTokens
    after: ImageTokens
    fidelity: Fidelity = Fidelity.EXACT
    frame: int = 0
    to_srgb: bool = False
    salvage: bool = False

    @property
    def scale(self) -> tuple[float, float]:
        """Delivered over original, across and down. Nothing is cropped or padded, so the offset is always 0."""
        return self.target.width / self.original.width, self.target.height / self.original.height

    @property
    def untouched(self) -> bool:
        return not self.changes

    @property
    def keeps_file(self) -> bool:
        """Whether the original file's bytes are delivered (perhaps under another spelling of the data URL)."""
        return all(change in (Change.DATA_URL, Change.REMOTE) for change in self.changes)

    @property
    def picture(self) -> str:
        """All that decides what is made of a source, in one line: two plans that spell it alike deliver one file."""
        if self.keeps_file:
            return "file"
        red, green, blue = self.background
        return (
            f"{self.version} {self.target} frame={self.frame} {','.join(self.changes)} {self.output}"
            f" q={self.jpeg_quality} on={red},{green},{blue} {self.fidelity}"
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """One prepared image: the whole canonical data URL as ASCII, safe inside a JSON string without escaping."""

    data_url: bytes
    size: Size
    format: ImageFormat
    file_byte_count: int
    file_sha256: bytes | None = None
