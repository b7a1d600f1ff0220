"""What reached the engine, kept for tests and the demo, and the faults that a test orders.

Records never hold picture data or long strings: a string above 200 characters is replaced by its length.
"""

import json
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gateway.simulator.fields import Json, JsonObject, integer, mapping, number, sequence, text
from gateway.simulator.pictures import Loaded
from gateway.simulator.refusal import Refusal

_LONGEST_KEPT_STRING = 200
# As deep as a request anybody means goes; recursion must not fail on what a parser takes.
_LEVELS_KEPT = 32
_RECORDS_KEPT = 10_000


class Outcome(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    REFUSED = "refused"
    ABORTED = "aborted"
    FAULTED = "faulted"


@dataclass(slots=True)
class Record:
    """One request to an inference path. `images` hold what was decoded; token counts are the engine's.

    `in_flight`: requests in this engine when it came, itself among them.
    """

    index: int
    method: str
    path: str
    headers: list[tuple[str, str]]
    body_bytes: int = 0
    body_sha256: str = ""
    body: Json = None
    images: list[JsonObject] = field(default_factory=list)
    prompt_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    in_flight: int = 0
    status: int = 0
    outcome: Outcome = Outcome.RUNNING

    def saw(self, loaded: Sequence[Loaded]) -> None:
        self.images = [_image(entry) for entry in loaded]

    def as_json(self) -> JsonObject:
        return {
            "index": self.index,
            "method": self.method,
            "path": self.path,
            "headers": [[name, value] for name, value in self.headers],
            "body_bytes": self.body_bytes,
            "body_sha256": self.body_sha256,
            "body": self.body,
            "images": list[Json](self.images),
            "prompt_tokens": self.prompt_tokens,
            "image_tokens": self.image_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "in_flight": self.in_flight,
            "status": self.status,
            "outcome": self.outcome.value,
        }


def _image(loaded: Loaded) -> JsonObject:
    """The picture that answers for the part, and (when bytes came) the raster that was sent."""
    sent, answered = loaded.sent_raster, loaded.picture
    return {
        "pointer": loaded.source.pointer,
        "uuid": loaded.source.uuid,
        "content_hash": loaded.source.content_hash,
        "sent_bytes": loaded.sent_bytes,
        "sha256": loaded.sent_sha256,
        "format": sent.format if sent else None,
        "stored_width": sent.stored_width if sent else None,
        "stored_height": sent.stored_height if sent else None,
        "orientation": sent.orientation if sent else None,
        "width": answered.raster.width,
        "height": answered.raster.height,
        "mean_rgb": list[Json](answered.raster.mean_rgb),
        "fingerprint": answered.raster.fingerprint,
        "tokens": answered.tokens,
        "rows": answered.fitted.rows,
        "columns": answered.fitted.columns,
        "identifier": answered.identifier,
        "cache_hit": loaded.cache_hit,
    }


def abridged(value: Json, levels: int = _LEVELS_KEPT) -> Json:
    """The same JSON with long strings replaced by their length, and by a mark what lies deeper than ``levels``."""
    if isinstance(value, str) and len(value) > _LONGEST_KEPT_STRING:
        return f"<{len(value)} characters>"
    if isinstance(value, dict | list) and not levels:
        return "<deeper>"
    if isinstance(value, dict):
        return {key: abridged(entry, levels - 1) for key, entry in value.items()}
    if isinstance(value, list):
        return [abridged(entry, levels - 1) for entry in value]
    return value


class Recorder:
    """The latest records, and a file of JSON lines when one is named; a record is written when its request ends."""

    def __init__(self, path: str | None) -> None:
        self._file = Path(path).open("a", encoding="utf-8") if path else None  # noqa: SIM115 (closed in close)
        self._records: deque[Record] = deque(maxlen=_RECORDS_KEPT)
        self._next_index = 0

    def begin(self, method: str, path: str, headers: Sequence[tuple[str, str]]) -> Record:
        record = Record(self._next_index, method, path, list(headers))
        self._next_index += 1
        self._records.append(record)
        return record

    def end(self, record: Record) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record.as_json()) + "\n")
            self._file.flush()

    def listing(self) -> list[Json]:
        return [record.as_json() for record in self._records]

    def clear(self) -> None:
        self._records.clear()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class FaultKind(StrEnum):
    """`status`: that status at once. `reset_before_status`, `hang_before_status`: no byte. The `_mid_stream` kinds act
    after `after_events` events of a stream: reset, end without the closing chunk, silence, or the engine's in-stream
    error. `usage_drift` adds `tokens` to the reported prompt and picture tokens. `delay` waits `delay_s` first.
    `not_http`, `half_head`, `short_body` and `broken_chunk` answer with rubbish and close."""

    STATUS = "status"
    DELAY = "delay"
    RESET_BEFORE_STATUS = "reset_before_status"
    HANG_BEFORE_STATUS = "hang_before_status"
    RESET_MID_STREAM = "reset_mid_stream"
    CLOSE_MID_STREAM = "close_mid_stream"
    HANG_MID_STREAM = "hang_mid_stream"
    ERROR_MID_STREAM = "error_mid_stream"
    USAGE_DRIFT = "usage_drift"
    NOT_HTTP = "not_http"
    HALF_HEAD = "half_head"
    SHORT_BODY = "short_body"
    BROKEN_CHUNK = "broken_chunk"


@dataclass(slots=True)
class Fault:
    kind: FaultKind
    times: int
    status: int
    after_events: int
    tokens: int
    delay_s: float
    rate: float


class FaultPlan:
    """Ordered faults in the order given. Each strikes `times` generating requests, every one with probability `rate`,
    before the next fault's turn comes."""

    def __init__(self, seed: int) -> None:
        self._faults: list[Fault] = []
        self._random = random.Random(seed)

    def order(self, body: Json) -> None:
        """Replace the plan by `{"faults": [{"kind": …, "times": 1, …}]}`. Raises Refusal 400."""
        planned = [_fault(entry) for entry in sequence(mapping(body).get("faults"))]
        self._faults = planned

    def take(self) -> Fault | None:
        """The fault that strikes the request arriving now."""
        while self._faults and self._faults[0].times <= 0:
            self._faults.pop(0)
        if not self._faults or self._random.random() >= self._faults[0].rate:
            return None
        self._faults[0].times -= 1
        return self._faults[0]


def _fault(entry: Json) -> Fault:
    fields = mapping(entry)
    kind = text(fields.get("kind"))
    if kind not in set(FaultKind):
        raise Refusal(400, f"faults: unknown kind {kind!r}; known: {', '.join(FaultKind)}")
    times, status, after_events, token_count = (
        integer(fields.get(name)) for name in ("times", "status", "after_events", "tokens")
    )
    rate = number(fields.get("rate"))
    return Fault(
        kind=FaultKind(kind),
        times=1 if times is None else times,
        status=503 if status is None else status,
        after_events=1 if after_events is None else after_events,
        tokens=1 if token_count is None else token_count,
        delay_s=number(fields.get("delay_s")) or 0.0,
        rate=1.0 if rate is None else rate,
    )
