"""The nouns that more than one package speaks of: frozen values, no behaviour beyond simple arithmetic.

Decided here: what a request's parts are called and which units they carry. Not decided here: how any value is
computed (the package that owns the stage does that). Sizes are pixels *after* orientation unless a name says raster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Protocol, TypeAlias

TenantId = NewType("TenantId", str)
TaskName = NewType("TaskName", str)
BackendName = NewType("BackendName", str)
RequestId = NewType("RequestId", str)

# xxh3-128 over the decoded source bytes: places images on backends, never proves identity to an engine.
PlacementDigest = NewType("PlacementDigest", bytes)
# Keyed BLAKE3 (256 bit) over the decoded source bytes, salted per deployment: the root of every engine identity.
ContentDigest = NewType("ContentDigest", bytes)

Json: TypeAlias = "bool | int | float | str | LongString | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
# Where a value stands in the parsed body: object keys and array indices from the root.
Pointer: TypeAlias = tuple[str | int, ...]
HeaderList: TypeAlias = Sequence[tuple[str, str]]


def dotted(pointer: Pointer) -> str:
    """Name a part of the body for people: ``("messages", 1, "content", 0)`` -> ``messages.1.content.0``."""
    return ".".join(str(step) for step in pointer)


class Buffer(Protocol):
    """What a body is kept in: ``bytes`` or a shared ``mmap``; both search without copying."""

    def find(self, sub: bytes, start: int, end: int, /) -> int: ...

    def __getitem__(self, key: slice, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open byte range of the body's buffer."""

    start: int
    stop: int

    @property
    def byte_count(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class LongString:
    """A JSON string too long to be parsed; its bytes stay in the body between (not including) the quotes.

    ``text_byte_count`` is its length as UTF-8 once escapes are resolved, where that was counted (not for data URLs).
    """

    span: Span
    has_escapes: bool
    text_byte_count: int | None = None
    is_data_url: bool = False


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


class ImageForm(StrEnum):
    """How a prepared image is written: in place of the source string, or (base64_source) of the object around it."""

    DATA_URL = "data_url"
    BASE64 = "base64"
    BASE64_SOURCE = "base64_source"


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One image of the request, in the order of the prompt; errors ``name`` it messages.1.content.0.image_url.

    ``pointer`` is where the source string stands; ``part`` the content part around it (where fields are added);
    ``wrap`` tells that the source stood as a bare string where the engine wants ``{"url": ...}``; ``retype`` that the
    part came without a type, or with one that not every engine knows, and is to be given ``"type": "image_url"``.
    ``media_type`` was declared beside bare base64.
    """

    pointer: Pointer
    part: Pointer
    source: str | LongString
    message_index: int
    detail: str | None = None
    wrap: bool = False
    retype: bool = False
    foreign_fields: tuple[str, ...] = ()
    form: ImageForm = ImageForm.DATA_URL
    media_type: str | None = None

    @property
    def name(self) -> str:
        return dotted(self.pointer[:-1] if self.pointer[-1] == "url" else self.pointer)


@dataclass(frozen=True, slots=True)
class OtherMedium:
    """A video or sound of the request. ``is_inline`` = its bytes are in the body, so no engine need fetch anything."""

    name: str
    is_inline: bool


@dataclass(frozen=True, slots=True)
class Call:
    """What the journey needs to know of a chat request, whatever its dialect.

    ``text_bytes`` counts the UTF-8 bytes of text the chat template will see; image sources count nothing.
    ``foreign_fields`` are the engine-internal fields a client sent (stripped before forwarding). ``is_continued``: the
    engine adds messages that it has kept, so its counts are not of this request alone.
    """

    model: str | None
    stream: bool
    wants_usage: bool
    output_limit_tokens: int | None
    images: tuple[ImagePart, ...]
    text_bytes: int
    message_count: int
    choices: int = 1
    user: str | None = None
    task: str | None = None
    other_media: tuple[OtherMedium, ...] = ()
    foreign_fields: tuple[Pointer, ...] = ()
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage as an engine reported it; ``None`` where it did not say."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    image_tokens: int | None = None


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


@dataclass(frozen=True, slots=True)
class Probe:
    """What an image's header says, before any pixel is decoded.

    ``raster`` is the stored size; ``orientation`` the EXIF value 1..8 (unknown values read as 1). ``complete`` is
    ``False`` where the file's own end mark or declared length is missing. ``scans`` counts JPEG scans (1 = baseline).
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

    @property
    def upright(self) -> Size:
        """The size after orientation: tags 5 to 8 swap the sides."""
        if self.orientation >= 5:
            return Size(self.raster.height, self.raster.width)
        return self.raster


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """All that is known of one image source once it has been looked at (stage *fetch*).

    ``canonical`` means that the string in the body is already a data URL with a lower-case scheme and marker, the true
    media type and strict padded base64, so it may be passed byte for byte; ``bare_base64`` that it is the latter alone.
    """

    byte_count: int
    placement: PlacementDigest
    content: ContentDigest
    probe: Probe
    canonical: bool
    remote: bool = False
    bare_base64: bool = False


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """The price of one raster in one model. ``tokens`` are positions that hold an image embedding.

    ``struct_tokens`` are added by the processor's expansion, ``wrapper_tokens`` by the chat template around the image
    (Qwen: 2). ``grid`` is (frames, rows, columns) in patches. ``position_advance`` is the M-RoPE advance.
    """

    tokens: int
    struct_tokens: int
    wrapper_tokens: int
    grid: tuple[int, int, int]
    position_advance: int
    vit_patches: int

    @property
    def prompt_tokens(self) -> int:
        return self.tokens + self.struct_tokens + self.wrapper_tokens


class Change(StrEnum):
    """Why an image is not passed byte for byte; each is counted by reason."""

    RESIZED = "resized"
    ENLARGED = "enlarged"
    ORIENTATION = "orientation"
    FRAMES = "frames"
    BIT_DEPTH = "bit_depth"
    ALPHA = "alpha"
    COLOUR = "colour"
    FORMAT = "format"
    DATA_URL = "data_url"
    REMOTE = "remote"


class OutputFormat(StrEnum):
    """``auto`` keeps photographs JPEG and everything that came lossless PNG; the worker decides by content."""

    AUTO = "auto"
    JPEG = "jpeg"
    PNG = "png"


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What will be done to one image: the only input besides the source bytes that the worker's output depends on.

    ``changes`` empty = pass the source string untouched; only ``data_url``/``remote`` = the original file bytes in a
    canonical data URL, no pixel decoded; anything else = decode, orient, flatten on ``background``, resize, encode.
    ``version`` names codec backend, library versions and settings: same source + same plan = same bytes everywhere.
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

    @property
    def untouched(self) -> bool:
        return not self.changes

    @property
    def keeps_file(self) -> bool:
        """Whether the original file's bytes are delivered (perhaps under another spelling of the data URL)."""
        return all(change in (Change.DATA_URL, Change.REMOTE) for change in self.changes)


@dataclass(frozen=True, slots=True)
class Prepared:
    """One prepared image: the whole canonical data URL as ASCII, safe inside a JSON string without escaping."""

    data_url: bytes
    size: Size
    format: ImageFormat
    file_byte_count: int
    file_sha256: bytes | None = None


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """Predicted tokens of one request. ``text_tokens`` is the expected count, bounded by the other two.

    ``exact`` is set when the model's own tokenizer and template counted the text.
    """

    text_tokens: int
    text_lower_bound: int
    text_upper_bound: int
    image_tokens: int
    image_overhead_tokens: int
    output_tokens: int
    exact: bool = False

    @property
    def prompt_tokens(self) -> int:
        return self.text_tokens + self.image_tokens + self.image_overhead_tokens

    @property
    def prompt_lower_bound(self) -> int:
        return self.text_lower_bound + self.image_tokens + self.image_overhead_tokens

    @property
    def kv_tokens(self) -> int:
        """What the request may come to hold: the prompt (upper bound) and its output reserve."""
        return self.text_upper_bound + self.image_tokens + self.image_overhead_tokens + self.output_tokens


class EngineKind(StrEnum):
    VLLM = "vllm"
    SGLANG = "sglang"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class BackendView:
    """One backend as routing sees it at one moment: discovered facts, health and load. Immutable.

    ``None`` = not known. ``queued_prefill_tokens`` are ours, uncached, unanswered. ``returns``: how often it came back.
    """

    name: BackendName
    url: str
    engine: EngineKind
    engine_version: str | None = None
    models: tuple[str, ...] = ()
    model_root: str | None = None
    healthy: bool = True
    draining: bool = False
    vision: bool = True
    context_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    kv_block_tokens: int | None = None
    max_pixels: int | None = None
    max_images: int | None = None
    inflight_requests: int = 0
    inflight_kv_tokens: int = 0
    queued_prefill_tokens: int = 0
    queued_encode_patches: int = 0
    engine_running: int | None = None
    engine_waiting: int | None = None
    kv_use_ratio: float | None = None
    scraped_age_s: float | None = None
    returns: int = 0


@dataclass(frozen=True, slots=True)
class RequestCost:
    """What one request will ask of a backend, for its account and for the decision."""

    prompt_tokens: int
    output_tokens: int
    encode_patches: int

    @property
    def kv_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens
