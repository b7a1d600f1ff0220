"""What a request is measured against: one resolved policy, every value typed and with its reason.

Decided here: names, types and meaning of the resolved values. Not decided here: where they come from (`resolve`), their
defaults and ranges (`rules`), and when they are compared with a request (`check`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.types import Fidelity, ImageFormat, OutputFormat, Pointer, Size, TaskName, TenantId


class Mode(StrEnum):
    """``shadow`` computes and reports everything and neither refuses nor changes anything."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


class Profile(StrEnum):
    """A vendor whose limits, levels of detail and errors stand below a file's own rules."""

    NONE = "none"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class Several(StrEnum):
    """What becomes of a source that holds several pictures: the frames of an animation, the pages of a document."""

    FIRST = "first"
    REJECT = "reject"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pictures of a source are used. ``count`` bounds how many: 1 but for ``MANY``, written ``word:count``."""

    how: Several
    count: int = 1
    word: str = ""

    def __str__(self) -> str:
        return f"{self.word}:{self.count}" if self.how is Several.MANY else self.how.value


FIRST = Selection(Several.FIRST)


class ColourProfile(StrEnum):
    """What becomes of an embedded colour profile that is not sRGB: dropped, as engines do, or applied."""

    IGNORE = "ignore"
    SRGB = "srgb"


class Truncated(StrEnum):
    """What becomes of a file that ends before its picture does."""

    REJECT = "reject"
    SALVAGE = "salvage"


class Geometry(StrEnum):
    """``preserve``: the gateway never resizes, so coordinates in the answer refer to what the client sent."""

    RESIZE = "resize"
    PRESERVE = "preserve"


class Excess(StrEnum):
    """What becomes of a request above a rule. Dropped images leave a marker where they stood."""

    SHRINK = "shrink"
    DROP_OLDEST = "drop_oldest"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class OnExcess:
    """The action of every rule above which more can be done than to refuse, under the rule's own name."""

    max_images: Excess = Excess.REJECT
    max_side: Excess = Excess.SHRINK
    max_pixels: Excess = Excess.SHRINK
    max_total_pixels: Excess = Excess.SHRINK
    max_image_tokens: Excess = Excess.SHRINK
    max_video_tokens: Excess = Excess.SHRINK


@dataclass(frozen=True, slots=True)
class History:
    """When the oldest images of a conversation are left out, ``batch`` at a time: above any of the triggers.

    ``bytes`` are those of image files that came inline, ``tokens`` those of images as planned. The newest
    ``keep_newest`` always stay.
    """

    images: int | None = None
    bytes: int | None = None
    tokens: int | None = None
    batch: int = 10
    keep_newest: int = 4


class Video(StrEnum):
    """What a backend gets of a video: the file as it came, or frames sampled by the model's own rule."""

    FILE = "file"
    FRAMES = "frames"


@dataclass(frozen=True, slots=True)
class Adaptive:
    """How far an image may shrink below its cap by what it shows: ``models.detail`` says what the numbers do."""

    floor_pixels: int = 256 * 32 * 32
    halving_psnr_db: int = 31


class Orientation(StrEnum):
    """``preserve``: a tag that says how to turn an image is no reason to change it; engines differ in obeying it.

    An image that is changed for another reason comes out upright either way, for its tag is lost.
    """

    NORMALISE = "normalise"
    PRESERVE = "preserve"


class Detail(StrEnum):
    """How closely a client wants an image looked at: OpenAI's levels. No level is ``auto``."""

    LOW = "low"
    HIGH = "high"
    ORIGINAL = "original"
    AUTO = "auto"


class Coordinates(StrEnum):
    """What boxes and points of an answer refer to: the image as the model saw it, or as the client sent it."""

    MODEL = "model"
    ORIGINAL = "original"


class Disclosure(StrEnum):
    """Where a response tells what was done to its images."""

    HEADERS = "headers"
    BODY = "body"
    USAGE = "usage"


class StreamUsage(StrEnum):
    """Whether streams whose clients ask for no usage are settled by estimate, or by usage asked for on their behalf."""

    ASKED = "asked"
    SETTLE = "settle"


class CacheSalt(StrEnum):
    """Who shares an engine's prefix cache: everybody, one tenant, or one user of one tenant."""

    NONE = "none"
    TENANT = "tenant"
    USER = "user"


class ImageScope(StrEnum):
    """Who shares the images that an engine keeps under our ids: one tenant, one user of it, or all who say so."""

    TENANT = "tenant"
    USER = "user"
    ALL = "all"


class BytesOnce(StrEnum):
    """Whether an image that its backend is believed to hold goes as its id alone, where the engine takes that."""

    AUTO = "auto"
    NEVER = "never"


class FieldAction(StrEnum):
    """What becomes of a field of the body that is engine-internal: taken out, forwarded, or refused."""

    STRIP = "strip"
    ALLOW = "allow"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class EngineFields:
    """The action for every such field: those ``named``, in the order of their names, and all ``others``."""

    others: FieldAction
    named: tuple[tuple[str, FieldAction], ...] = ()

    def action(self, field: str) -> FieldAction:
        return dict(self.named).get(field, self.others) if self.named else self.others

    def allows_any(self, places: Iterable[Pointer]) -> bool:
        """Whether any of the fields at these places goes on: what an engine makes of one, nobody here can tell."""
        return any(self.action(str(place[-1])) is FieldAction.ALLOW for place in places)


class Urgency(StrEnum):
    """Who goes first where requests wait for a budget."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class RateRule:
    """One window of one unit, in whole units (megapixels in pixels); ``burst`` None: all of it may come at once."""

    unit: str
    amount: int
    window_s: int
    burst: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleValues:
    """The value of every rule, one field per file in `rules`. ``None`` of a limit: no limit.

    ``max_pixels`` None = the served model's own cap on the chosen backend. Counts are per request where the name does
    not say image; bytes are those of the image file, not of its base64. Sides are steps of (images from which on it
    holds, pixels of the longer side); ``detail`` pairs of (level, pixels; None = the engine's own cap).
    """

    max_images: int | None
    max_pixels: int | None
    max_input_pixels: int
    max_image_bytes: int
    max_total_bytes: int | None
    max_input_side: tuple[tuple[int, int], ...]
    max_side: tuple[tuple[int, int], ...]
    max_total_pixels: int | None
    detail: tuple[tuple[str, int | None], ...]
    adaptive: Adaptive | None
    orientation: Orientation
    formats: tuple[ImageFormat, ...]
    background: tuple[int, int, int]
    animated: Selection
    pages: Selection
    truncated: Truncated
    colour_profile: ColourProfile
    output: OutputFormat
    jpeg_quality: int
    fidelity: Fidelity
    geometry: Geometry
    answer_coordinates: Coordinates
    disclosure: Disclosure
    on_excess: OnExcess
    history: History | None
    buckets: tuple[Size, ...]
    max_image_tokens: int | None
    max_prompt_tokens: int | None
    max_output_tokens: int | None
    output_reserve_tokens: int
    video: Video
    max_videos: int | None
    max_video_bytes: int
    max_video_s: int | None
    max_video_frames: int | None
    max_video_tokens: int | None
    max_audios: int | None
    max_audio_bytes: int
    max_audio_s: int | None
    max_kv_tokens: int | None
    max_kv_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy(RuleValues):
    """Tenant x task x model, resolved.

    ``model`` is the client's name after aliases (None where it sent none); ``hosts`` None = any public host, empty =
    none; ``parameters`` are those of the deployment's alias that was named (`visible`). ``reasons`` maps each key to
    what decided it (``policies/acme.yaml:12 tasks.ocr.max_pixels``); ``policy_version`` changes exactly when a resolved
    value changes.
    """

    tenant: TenantId
    task: TaskName
    task_reason: str
    model: str | None
    mode: Mode
    profile: Profile
    kv_tokens_in_flight: int | None
    kv_bytes_in_flight: int | None
    requests_in_flight: int | None
    rates: tuple[RateRule, ...]
    priority: Urgency
    weight: float
    queue_timeout_s: float
    hosts: tuple[str, ...] | None
    cache_salt: CacheSalt
    image_ids: ImageScope
    bytes_once: BytesOnce
    engine_fields: EngineFields
    allowed_models: tuple[str, ...] | None
    stream_usage: StreamUsage
    reasons: Mapping[str, str]
    policy_version: str
    parameters: tuple[tuple[tuple[str, ...], str], ...] = ()

    @property
    def shadow(self) -> bool:
        return self.mode is Mode.SHADOW
