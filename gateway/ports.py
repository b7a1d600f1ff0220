"""What the journey needs of the world: Protocols only. ``app`` wires the shell to them, tests wire fakes.

Rules that every implementation keeps: an awaiting method may be cancelled at its await and then holds nothing; whatever
it returns has one owner and one *synchronous* release (``close``/``release``), safe to call twice; facts come back as
values, nobody below the journey records a metric or writes the access line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from gateway.errors import GatewayError
from gateway.quota.claim import Claim, Used
from gateway.quota.standing import Standing
from gateway.record import ExchangeRecord, RequestHead
from gateway.routing.blocks.prompt import RawPrompt
from gateway.routing.holding import Holding, Holdings, RouteKey
from gateway.types import (
    BackendName,
    BackendView,
    Buffer,
    ClipFacts,
    ClipPlan,
    HeaderList,
    ImagePlan,
    JsonObject,
    LongString,
    MediumKind,
    Prepared,
    PreparedClip,
    RequestCost,
    SourceFacts,
    TenantId,
)
from gateway.types.per_request import per_request

_Made = TypeVar("_Made")


class Clock(Protocol):
    def now_s(self) -> float:
        """Monotonic seconds."""
        ...


class Aside(Protocol):
    """Does pure work where it holds up nobody else, in a thread; what it raises is raised here."""

    async def __call__(self, work: Callable[[], _Made], /) -> _Made: ...


class Body(Protocol):
    """A request body that lies still in one buffer until it is closed."""

    @property
    def buffer(self) -> Buffer: ...
    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    def view(self, start: int, stop: int) -> memoryview:
        """Zero-copy bytes of the buffer (absolute offsets); must not be used after ``close``."""
        ...

    def close(self) -> None: ...


class Client(Protocol):
    """The client's side of one exchange, as the HTTP edge offers it."""

    @property
    def head(self) -> RequestHead: ...
    @property
    def started(self) -> bool:
        """Whether the response's status line is on its way (after that an error is a stream error)."""
        ...

    @property
    def left(self) -> bool:
        """Whether the client's connection is gone: a ConnectionError then is no fault of ours."""
        ...

    async def read(self, limit_bytes: int) -> Body:
        """Read the whole body. Raises BodyTooLarge, UnsupportedEncoding, BodyMemoryExhausted, Malformed."""
        ...

    def keep_alive(self, every_s: float) -> None:
        """Begin an event stream now and send a comment whenever it was silent for ``every_s`` (only between events)."""
        ...

    async def start(self, status: int, headers: HeaderList, content_length: int | None) -> None: ...
    async def write(self, chunk: bytes) -> None:
        """Send on, waiting while the client is slow."""
        ...

    async def finish(self) -> None: ...
    async def refuse(self, error: GatewayError) -> None:
        """Answer with an error in the dialect's envelope; after the first byte as a stream error, or cut it."""
        ...

    async def chunk(self) -> bytes:
        """The next bytes of a body that is streamed through instead of read; ``b""`` at the end."""
        ...


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where one image source is: a long string of the body, or a short string (remote URL, tiny data URL)."""

    name: str
    source: str | LongString


@per_request(frozen=True, slots=True)
class Accepts:
    """What is looked at only where a policy says so: PDF documents, and files that end before their picture does."""

    documents: bool = False
    truncated: bool = False


@per_request(frozen=True, slots=True)
class MediaScope:
    """On whose behalf media are looked at. ``hosts`` None = any public host; empty = none.

    ``deadline_s`` bounds each stage's work, ``patience_s`` the wait behind others' (None: as long as the work).
    ``weight`` is the tenant's share of the workers against one of weight 1. Images of more pixels than
    ``measures_above_pixels`` have their detail measured (None: no image has).
    """

    tenant: TenantId
    max_image_bytes: int
    max_input_pixels: int
    hosts: tuple[str, ...] | None
    deadline_s: float
    accepts: Accepts = Accepts()
    patience_s: float | None = None
    weight: float = 1.0
    measures_above_pixels: int | None = None

    @property
    def waits_s(self) -> float:
        """How long work may wait behind others'."""
        return self.deadline_s if self.patience_s is None else self.patience_s


@dataclass(frozen=True, slots=True)
class PrepareJob:
    source: SourceRef
    facts: SourceFacts
    plan: ImagePlan
    wants_sha256: bool = False


@dataclass(frozen=True, slots=True)
class PreparedResult:
    prepared: Prepared
    from_cache: bool


class Looked(Protocol):
    """What stage *fetch* holds on to (fetched bytes of remote images) until the images are prepared."""

    @property
    def facts(self) -> Sequence[SourceFacts]: ...
    def drop_files(self) -> None:
        """Nothing more will be prepared of these."""
        ...

    def close(self) -> None: ...


class Media(Protocol):
    """Images: from a reference to facts, from a plan to prepared bytes."""

    @property
    def plan_version(self) -> str:
        """Codec backend, library versions and settings, as one short word that is part of every plan."""
        ...

    async def look(self, body: Body, sources: Sequence[SourceRef], scope: MediaScope) -> Looked:
        """Facts of every source, in order; unknown ones cost one worker job or one fetch, all at once.

        Raises BadMedia (with ``part`` = the source's name), ImageTooLarge, PoolSaturated, ImageWorkerLost.
        """
        ...

    async def prepare(
        self, body: Body, looked: Looked, jobs: Sequence[PrepareJob], scope: MediaScope
    ) -> Sequence[PreparedResult]:
        """Prepared bytes of every job, in order; cached ones cost nothing, duplicates are made once, in parallel."""
        ...

    def peek(self, scope: MediaScope, facts: SourceFacts, plan: ImagePlan) -> bool:
        """Whether these prepared bytes are in the cache now."""
        ...


@dataclass(frozen=True, slots=True)
class ClipRef:
    """Where one video's or sound's source is, and how many bytes its file may have. ``is_bare``: no data URL around."""

    name: str
    source: str | LongString
    kind: MediumKind
    is_bare: bool
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ClipScope:
    """On whose behalf clips are looked at. ``hosts`` None = any public host; empty = none."""

    tenant: TenantId
    max_pixels: int
    hosts: tuple[str, ...] | None
    deadline_s: float


@dataclass(frozen=True, slots=True)
class ClipJob:
    ref: ClipRef
    facts: ClipFacts
    plan: ClipPlan


class LookedClips(Protocol):
    """What is held on to (fetched bytes of remote clips) until they are prepared."""

    @property
    def facts(self) -> Sequence[ClipFacts]: ...
    def close(self) -> None: ...


class Clips(Protocol):
    """Videos and sounds: from a reference to facts, from a plan to a data URL."""

    @property
    def version(self) -> str | None:
        """Decoder's and encoder's versions, part of every plan; ``None`` where no frames can be sampled."""
        ...

    async def look(self, body: Body, refs: Sequence[ClipRef], scope: ClipScope) -> LookedClips:
        """Facts of every clip, in order. Raises MediumTooLarge, BadMedia, InvalidRequest, PoolSaturated."""
        ...

    async def prepare(
        self, body: Body, looked: LookedClips, jobs: Sequence[ClipJob], scope: ClipScope
    ) -> Sequence[PreparedClip]:
        """Data URLs of every job, in order. Raises BadMedia, MediumTooLarge, MediumTooLong, PoolSaturated."""
        ...


@dataclass(frozen=True, slots=True)
class PromptCount:
    """A prompt as its own tokenizer counts it, without the token that stands for each image.

    What the template writes around an image is in ``text_tokens``. Not ``is_certain``: engines spell it differently.
    ``raw`` are the tokens themselves, where they are kept.
    """

    text_tokens: int
    images: int
    is_certain: bool
    raw: RawPrompt | None = field(default=None, compare=False, repr=False)


class PromptCounter(Protocol):
    """Exact text tokens, for the models whose tokenizer is configured."""

    def covers(self, model: str, dialect: str) -> bool: ...

    async def count(self, model: str, body: Body, tree: JsonObject, text_bytes: int) -> PromptCount | None:
        """``None`` where only the engine can tell. Never raises for what a client wrote."""
        ...


class Reservation(Protocol):
    """What was claimed of a tenant's budgets: open -> settled | released | expired; the first transition wins."""

    @property
    def standing(self) -> Standing:
        """The tenant's rates after this request was charged."""
        ...

    @property
    def finding(self) -> GatewayError | None:
        """What it would have been refused with, in shadow mode."""
        ...

    def settle(self, used: Used | None) -> None:
        """The engine answered; ``None`` where it did not say what it used, so the estimate stands."""
        ...

    def release(self) -> None: ...


class Budgets(Protocol):
    async def reserve(self, claim: Claim) -> Reservation:
        """Take from the tenant's budgets, waiting in the admission queue if need be. Raises Exhausted, BackendsFull,
        and LimitExceeded for what could never fit."""
        ...

    def inflight_kv_tokens(self, tenant: TenantId) -> int: ...


class Account(Protocol):
    """One request's cost standing on one backend's local account."""

    def answered(self) -> None:
        """The first byte came: the prefill is no longer ahead of others."""
        ...

    def close(self) -> None: ...


@per_request(frozen=True, slots=True)
class UpstreamRequest:
    method: str
    path: str
    query: str
    headers: HeaderList
    body: Sequence[bytes | memoryview]
    body_bytes: int
    affinity_key: str = ""
    cost: RequestCost | None = None


class UpstreamResponse(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> HeaderList:
        """End-to-end headers only (hop-by-hop and Connection-nominated ones are gone)."""
        ...

    @property
    def content_length(self) -> int | None: ...
    async def chunk(self) -> bytes:
        """The next bytes as they came, ``b""`` at the proper end. Raises BackendLost, BackendTimeout."""
        ...

    def close(self) -> None:
        """Give the connection back if the response was read to its end, else cut it at once."""
        ...


class Upstream(Protocol):
    def views(self) -> Sequence[BackendView]:
        """Everything known of all backends now, health and load included; cheap, no I/O."""
        ...

    def open_account(self, backend: BackendName, cost: RequestCost) -> Account: ...

    async def forward(self, backend: BackendName, request: UpstreamRequest) -> UpstreamResponse:
        """Send once. Raises NotTaken (may go elsewhere), BackendLost, BackendTimeout. Never resends by itself."""
        ...

    async def stream(
        self, backend: BackendName, request: UpstreamRequest, client: Client, limit_bytes: int
    ) -> UpstreamResponse:
        """Send a body while it is read from the client (pass-through); ``request.body`` is empty."""
        ...

    def may_retry(self, reason: str = "") -> bool:
        """Whether a request refused for this reason (``NotTaken.reason``) may be sent to another backend now."""
        ...

    async def look_ahead(self, key: RouteKey) -> None:
        """Have ready what ``holdings`` will be asked for this content; returns at once where that is little."""
        ...

    def holdings(self, key: RouteKey) -> Holdings:
        """What backends hold of this content; who is missing holds nothing that is known."""
        ...

    def learn(self, backend: BackendName, key: RouteKey) -> None:
        """The backend is given this content now."""
        ...

    def correct(self, backend: BackendName, believed: Holding, cached_tokens: int) -> None:
        """The backend said how much of the prompt it had held, where ``believed`` was expected."""
        ...

    def learn_pace(self, backend: BackendName, tokens: int, patches: int, first_token_s: float) -> None:
        """A first token came after so long, behind so much prefill and encoding, others' included."""
        ...


class Recorder(Protocol):
    """Metrics and the access line. Called exactly once per exchange, whatever became of it."""

    def record(self, exchange: ExchangeRecord) -> None: ...
