"""One exchange: the head it begins with, and the facts that become known of it.

Decided here: which facts are gathered. Not decided here: how they are shown (``telemetry``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.policy.effective import Profile
from gateway.types import HeaderList, RequestId, SourceFacts, TokenEstimate, Usage
from gateway.types.per_request import per_request


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where an exchange stands in a trace: ids in lower-case hex, drawn when its head is read.

    ``span_id`` is the whole exchange's, ``forward_id`` that of its call to a backend, which is the backend's parent.
    ``parent_id``: the client's span; ``None`` where the trace begins here.
    """

    trace_id: str
    span_id: str
    forward_id: str
    parent_id: str | None
    sampled: bool

    @property
    def traceparent(self) -> str:
        """What a backend is told (W3C Trace Context, level 1, §3.2)."""
        return f"00-{self.trace_id}-{self.forward_id}-{'01' if self.sampled else '00'}"


@per_request(frozen=True, slots=True)
class RequestHead:
    """A client's request head. Header names keep their spelling; values are as received.

    ``trace`` is there where traces are made; else ``trace_id`` is the client's.
    """

    method: str
    path: str
    query: str
    headers: HeaderList
    content_length: int | None
    request_id: RequestId
    trace_id: str | None = None
    trace: TraceContext | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header; ``name`` in lower case."""
        for key, value in self.headers:
            if len(key) == len(name) and key.lower() == name:
                return value
        return None


def stage_totals(stages: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Seconds by stage, in the order met; *check* is met twice and counts together."""
    totals: dict[str, float] = {}
    for stage, seconds in stages:
        totals[stage] = totals[stage] + seconds if stage in totals else seconds
    return totals


@dataclass(slots=True)
class AskedFor:
    """What the body asks for, in numbers; ``details`` of all images in their order, as the client wrote them.

    ``max_pixels`` and ``context_tokens`` are the served model's (None: not known, or not come so far).
    """

    images: int
    details: tuple[str | None, ...]
    videos: int
    audios: int
    messages: int
    text_bytes: int
    output_limit_tokens: int | None
    choices: int
    has_tools: bool
    max_pixels: int | None = None
    context_tokens: int | None = None


@dataclass(slots=True)
class ExchangeRecord:
    """The facts of one exchange as they become known; the recorder turns them into metrics and one access line.

    Mutable on purpose: it is owned by exactly one journey. Never holds payloads, keys or query strings.
    """

    request_id: RequestId
    dialect: str
    path: str
    started_s: float
    stages: list[tuple[str, float]] = field(default_factory=list)
    tenant: str | None = None
    key: str | None = None
    task: str | None = None
    task_reason: str | None = None
    model: str | None = None
    known_model: bool = False
    family: str | None = None
    stream: bool = False
    shadow: bool = False
    profile: Profile | None = None
    asked: AskedFor | None = None
    sources: Sequence[SourceFacts] = ()
    request_bytes: int = 0
    forwarded_bytes: int = 0
    response_bytes: int = 0
    images_passed: int = 0
    images_shrunk: int = 0
    images_recoded: int = 0
    images_omitted: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    image_bytes_in: int = 0
    image_bytes_out: int = 0
    image_pixels_in: int = 0
    image_pixels_out: int = 0
    image_tokens_original: int = 0
    image_patches: int = 0
    images_known: int = 0
    image_ids_sent: int = 0
    image_ids_alone: int = 0
    image_ids_missed: int = 0
    exact_prefix_tokens: int | None = None
    image_digests: list[str] = field(default_factory=list)
    geometry: list[str] = field(default_factory=list)
    coordinates: str | None = None
    cache_queries: int = 0
    cache_hits: int = 0
    clips: dict[tuple[str, str], int] = field(default_factory=dict)
    clip_bytes_in: int = 0
    clip_bytes_out: int = 0
    clip_digests: list[str] = field(default_factory=list)
    video_tokens: int = 0
    video_tokens_expected: int | None = None
    findings: list[str] = field(default_factory=list)
    shadow_image_tokens: int | None = None
    shadow_changes: Mapping[str, int] = field(default_factory=dict)
    trace_id: str | None = None
    trace: TraceContext | None = None
    method: str = "POST"
    sent_model: str | None = None
    stripped_fields: tuple[str, ...] = ()
    estimate: TokenEstimate | None = None
    usage: Usage | None = None
    expected_image_tokens: int | None = None
    text_agrees: bool | None = None
    drift_finding: str | None = None
    drift_inputs: dict[str, object] = field(default_factory=dict)
    backend: str | None = None
    backend_url: str | None = None
    engine: str | None = None
    decision_reason: str | None = None
    tell_decision: Callable[[], tuple[str, ...]] | None = None
    attempts: int = 0
    retry_reasons: list[str] = field(default_factory=list)
    legs: dict[tuple[str, str], int] = field(default_factory=dict)
    stranded: str | None = None
    status: int | None = None
    outcome: str = "ok"
    code: str | None = None
    rule: str | None = None
    rate_headers: list[tuple[str, str]] = field(default_factory=list)
    detail: str | None = None
    forwarded_s: float | None = None
    first_token_expected_s: float | None = None
    prefix_known_tokens: int = 0
    first_byte_s: float | None = None
    first_chunk_s: float | None = None
    ended_s: float | None = None

    @property
    def images(self) -> int:
        """Images that go on to a backend, whatever was done to them; those left out are not among them."""
        return self.images_passed + self.images_shrunk + self.images_recoded
