"""Spans leave here: the door of OpenTelemetry (extra ``otel``), in a thread of its own.

Decided here: that the loop only puts a record into a line, that the line is bounded (what comes when it is full is
counted and gone), that the thread builds the spans, encodes and sends them, what becomes of a collector that does not
answer (one warning a minute), and that what waits is sent before the process ends, for a while. Not decided here: what
a span says (`span_facts`), what is sampled (`trace`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway import __version__
from gateway.record import ExchangeRecord, RequestHead
from gateway.telemetry.log import JsonLog
from gateway.telemetry.span_facts import Attribute, SpanFacts, spans_of
from gateway.telemetry.trace import SpanTally, with_trace

# Records of finished exchanges, some KB each.
_WAITING_EXCHANGES = 2048
# Of some 16 spans each: small enough that encoding them does not keep the interpreter from the loop for long.
_BATCH_EXCHANGES = 32
_SEND_EVERY_S = 1.0
_CLOSE_S = 2.0
_WARN_EVERY_S = 60.0
_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
_SCOPE = InstrumentationScope("vlm-gateway", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _ERROR = Status(StatusCode.UNSET), Status(StatusCode.ERROR)


@dataclass(frozen=True, slots=True)
class SpanSettings:
    """Where spans go. ``endpoint`` is the collector's full URL (``.../v1/traces``); ``headers`` are secret."""

    endpoint: str
    headers: Mapping[str, str] = field(repr=False)
    service_name: str
    sample_ratio: float
    timeout_s: float


class _LastWord(logging.Handler):
    """Keeps what the exporter last complained of instead of printing it at every attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()[:256]


class Spans:
    """The spans of sampled exchanges. ``add`` is called on the loop; the rest happens in the thread."""

    def __init__(self, settings: SpanSettings, log: JsonLog) -> None:
        self._ratio = settings.sample_ratio
        self._log = log
        self._waiting: deque[tuple[float, ExchangeRecord]] = deque()
        self._sent = self._failed = self._dropped = 0
        self._ended = threading.Event()
        self._complaint = _LastWord()
        library = logging.getLogger("opentelemetry")
        library.handlers, library.propagate = [self._complaint], False
        resource = {"service.name": settings.service_name, "service.version": __version__}
        self._resource = Resource.create({**resource, "service.instance.id": str(uuid.uuid4())})
        self._exporter = OTLPSpanExporter(
            endpoint=settings.endpoint,
            headers=dict(settings.headers),
            timeout=settings.timeout_s,
            compression=Compression.Gzip,
        )
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def begin(self, head: RequestHead) -> RequestHead:
        """The head with its place in a trace."""
        return with_trace(head, self._ratio)

    def add(self, ended_at_s: float, exchange: ExchangeRecord) -> None:
        """Take an exchange that is over; ``ended_at_s`` by the wall clock. Never waits."""
        if exchange.trace is None or not exchange.trace.sampled:
            return
        if len(self._waiting) < _WAITING_EXCHANGES:
            self._waiting.append((ended_at_s, exchange))
        else:
            self._dropped += 1

    def tally(self) -> SpanTally:
        return SpanTally(self._sent, self._failed, self._dropped)

    async def stop(self) -> None:
        """Send what waits; a collector that does not answer keeps the process for two seconds at most."""
        self._ended.set()
        await asyncio.to_thread(self._thread.join, _CLOSE_S)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the library's one method without types

    def _run(self) -> None:
        while not self._ended.wait(_SEND_EVERY_S):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH_EXCHANGES, len(self._waiting)))]
            spans = [span for ended_at_s, x in batch for span in self._spans(spans_of(x, ended_at_s), x)]
            if self._exporter.export(spans) is SpanExportResult.SUCCESS:
                self._sent += len(batch)
                continue
            self._failed += len(batch)
            self._log.limited("warning", "spans_not_sent", every_s=_WARN_EVERY_S, reason=self._complaint.text)
            if self._ended.is_set():  # no time to lose on the others
                self._failed += len(self._waiting)
                self._waiting.clear()

    def _spans(self, facts: Iterable[SpanFacts], x: ExchangeRecord) -> list[ReadableSpan]:
        assert x.trace is not None, "add takes no others"
        trace = int(x.trace.trace_id, 16)
        made = []
        for each in facts:
            own = random.getrandbits(64) or 1 if each.span_id is None else int(each.span_id, 16)
            parent = None if each.parent_id is None else int(each.parent_id, 16)
            is_remote = each.kind == "server"
            made.append(
                ReadableSpan(
                    _text(each.name),
                    context=SpanContext(trace, own, is_remote=False, trace_flags=_SAMPLED),
                    parent=None if parent is None else SpanContext(trace, parent, is_remote, _SAMPLED),
                    resource=self._resource,
                    attributes={name: _sendable(value) for name, value in each.attributes.items()},
                    kind=_KINDS[each.kind],
                    status=_ERROR if each.is_error else _UNSET,
                    start_time=each.start_ns,
                    end_time=each.end_ns,
                    instrumentation_scope=_SCOPE,
                )
            )
        return made


def _text(value: str) -> str:
    """The same as UTF-8 can say it: clients may send halves of surrogate pairs."""
    return value.encode("utf-8", "replace").decode()


def _sendable(value: Attribute) -> Attribute:
    """As the protocol can hold it (numbers of 64 bits): one that it cannot would cost a whole batch of exchanges."""
    if isinstance(value, str):
        return _text(value)
    return value if isinstance(value, float) or -(1 << 63) <= value < 1 << 63 else str(value)
