"""A collector of OpenTelemetry on a real socket: takes OTLP over HTTP and keeps every span, decoded from protobuf."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Told:
    """One span as a collector sees it; ids in hex, kinds as the protocol numbers them."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    status: int
    attributes: dict[str, Any]
    resource: dict[str, Any]


INTERNAL, SERVER, CLIENT = 1, 2, 3
ERROR = 2


@dataclass(slots=True)
class Collector:
    """``status``: what it answers with."""

    status: int = 200
    spans: list[Told] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, dict(self.headers), body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the library names it
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.paths.append(path)
        self.headers.append({name.lower(): value for name, value in headers.items()})
        plain = gzip.decompress(body) if self.headers[-1].get("content-encoding") == "gzip" else body
        self.raw.append(plain)
        if self.status != 200:
            return
        for of_resource in ExportTraceServiceRequest.FromString(plain).resource_spans:
            resource = _values(of_resource.resource.attributes)
            self.spans += [_told(span, resource) for scope in of_resource.scope_spans for span in scope.spans]

    def whole(self) -> Told:
        """The only exchange's server span."""
        (found,) = [span for span in self.spans if span.kind == SERVER]
        return found

    def stages(self) -> dict[str, Told]:
        """The spans of stages by name, the last of each."""
        return {span.name: span for span in self.spans if span.kind != SERVER}


def _told(span: Any, resource: dict[str, Any]) -> Told:
    return Told(
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code,
        _values(span.attributes),
        resource,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}
