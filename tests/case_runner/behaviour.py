"""What backend.json says: one ``Behaviour`` per request, read strictly, and the bytes that follow from it.

Decided here: keys of a behaviour, framing, what counts as the body. Not decided here: sockets (``backend``).
"""

from __future__ import annotations

import base64
import gzip
import http.client
import zlib
from dataclasses import dataclass, replace
from typing import Any

from tests.case_runner.wire import Headers

ENDS = ("normal", "chunked-end", "fin", "rst", "hang", "rst-before-status", "rst-after-request", "not-listening")
_ENDS_WITHOUT_ANSWER = ("rst-before-status", "rst-after-request", "not-listening")
_KEYS = {
    "status", "headers", "framing", "delay_before_status_ms", "writes", "end", "close_after_response", "announce",
    "idle_close_ms", "only_if_accept_encoding_contains",
}  # fmt: skip
# Keys that may stand beside on_request and then hold for every behaviour.
_OF_ALL = ("close_after_response", "announce", "only_if_accept_encoding_contains")
_WRITE_KEYS = {"text", "b64", "raw", "flush", "sleep_ms"}
# How much more than was written a response that breaks off had promised.
_MISSING_BYTES = 64


class BadScript(Exception):
    """backend.json or origin.json says something that this runner does not know."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: bytes of the body, or raw bytes outside of any framing; then a flush and a pause."""

    data: bytes = b""
    is_raw: bool = False
    flush: bool = False
    sleep_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How one request is answered."""

    status: int = 200
    headers: Headers = ()
    framing: str = "content-length"
    delay_s: float = 0.0
    writes: tuple[Write, ...] = ()
    end: str = "normal"
    close_after_response: bool = False
    announce: str | None = None
    only_if_accept_encoding_contains: str | None = None
    answers: bool = True

    @property
    def body(self) -> bytes:
        """The body without its framing."""
        return b"".join(write.data for write in self.writes if not write.is_raw)

    @property
    def breaks_off(self) -> bool:
        """Whether the response ends before its framing says so."""
        return self.end in {"fin", "rst", "hang"}

    def head(self) -> bytes:
        """The status line and headers, with the framing's own header where the script gives none."""
        names = {name.lower() for name, _ in self.headers}
        lines = [f"HTTP/1.1 {self.status} {http.client.responses.get(self.status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.framing == "chunked" and "transfer-encoding" not in names:
            lines.append("Transfer-Encoding: chunked")
        if self.framing == "content-length" and "content-length" not in names:
            lines.append(f"Content-Length: {len(self.body) + (_MISSING_BYTES if self.breaks_off else 0)}")
        if self.announce is not None and "connection" not in names:
            lines.append(f"Connection: {self.announce}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def uncoded(self) -> Behaviour:
        """The same answer for a client that does not take its content coding."""
        coding = next((value for name, value in self.headers if name.lower() == "content-encoding"), "identity")
        headers = tuple(each for each in self.headers if each[0].lower() not in {"content-encoding", "content-length"})
        return replace(self, headers=headers, writes=(Write(decoded(self.body, coding), flush=True),))


def decoded(body: bytes, coding: str) -> bytes:
    """A body out of its content coding. Raises BadScript for an unknown coding, OSError or zlib.error for bad bytes."""
    match coding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return gzip.decompress(body)
        case "deflate":
            return zlib.decompress(body)
        case unknown:
            raise BadScript(f"content coding {unknown!r}")


def read_behaviour(spec: dict[str, Any]) -> Behaviour:
    """A behaviour from its JSON. Raises BadScript."""
    unknown = spec.keys() - _KEYS
    if unknown:
        raise BadScript(f"backend.json: unknown {', '.join(sorted(unknown))}")
    end = spec.get("end", "normal")
    framing = spec.get("framing", "content-length")
    if end not in ENDS or framing not in {"content-length", "chunked", "raw"}:
        raise BadScript(f"backend.json: end {end!r}, framing {framing!r}")
    return Behaviour(
        status=spec.get("status", 200),
        headers=tuple((str(name), str(value)) for name, value in spec.get("headers", ())),
        framing=framing,
        delay_s=spec.get("delay_before_status_ms", 0) / 1000,
        writes=tuple(_read_write(each) for each in spec.get("writes", ())),
        end=end,
        close_after_response=bool(spec.get("close_after_response", False)),
        announce=spec.get("announce"),
        only_if_accept_encoding_contains=spec.get("only_if_accept_encoding_contains"),
        answers=end not in _ENDS_WITHOUT_ANSWER and ("status" in spec or end != "hang"),
    )


def _read_write(spec: dict[str, Any]) -> Write:
    unknown = spec.keys() - _WRITE_KEYS
    if unknown:
        raise BadScript(f"backend.json: a write with {', '.join(sorted(unknown))}")
    raw = spec.get("raw")
    if isinstance(raw, str):
        data, is_raw = raw.encode("latin-1", "replace"), True
    elif "b64" in spec:
        data, is_raw = base64.b64decode(spec["b64"]), bool(raw)
    else:
        data, is_raw = spec.get("text", "").encode(), bool(raw)
    sleep_s = spec.get("sleep_ms", 0) / 1000
    return Write(data, is_raw, bool(spec.get("flush")) or sleep_s > 0, sleep_s)


@dataclass(frozen=True, slots=True)
class BackendScript:
    """backend.json as a whole."""

    replicas: int = 1
    on_request: tuple[Behaviour, ...] = ()
    of_replica: tuple[tuple[int, tuple[Behaviour, ...]], ...] = ()
    idle_close_s: float | None = None

    @property
    def is_faulty(self) -> bool:
        """Whether a backend misbehaves, so that a gateway may remember it afterwards."""
        behaviours = [*self.on_request, *(each for _, own in self.of_replica for each in own)]
        odd = any(
            each.end not in {"normal", "chunked-end"} or each.close_after_response or each.status >= 500 or each.delay_s
            for each in behaviours
        )
        return odd or self.idle_close_s is not None

    def own_of(self, replica: int) -> tuple[Behaviour, ...]:
        """The behaviours that one replica has for itself."""
        return dict(self.of_replica).get(replica, ())

    def listens(self, replica: int) -> bool:
        """Whether a replica accepts connections when the case begins."""
        first = (self.own_of(replica) or self.on_request)[:1]
        return not first or first[0].end != "not-listening"


def read_script(spec: dict[str, Any] | None) -> BackendScript:
    """backend.json, or None for the default backend. Raises BadScript."""
    if spec is None:
        return BackendScript()
    everywhere: dict[str, Any] = {key: spec[key] for key in _OF_ALL if key in spec}
    known = {"replicas", "on_request", "idle_close_ms", *everywhere}
    of_replica = []
    for key, value in spec.items():
        prefix, _, number = key.partition("_")
        if prefix == "replica" and number.isdigit():
            of_replica.append((int(number), _read_own(value, everywhere)))
        elif key not in known:
            raise BadScript(f"backend.json: unknown {key}")
    idle_ms = spec.get("idle_close_ms")
    return BackendScript(
        replicas=spec.get("replicas", 1),
        on_request=tuple(read_behaviour({**everywhere, **each}) for each in spec.get("on_request", ())),
        of_replica=tuple(of_replica),
        idle_close_s=None if idle_ms is None else idle_ms / 1000,
    )


def _read_own(value: str | dict[str, Any], everywhere: dict[str, Any]) -> tuple[Behaviour, ...]:
    if isinstance(value, str):
        return (read_behaviour({"end": value}),)
    behaviours = value.get("on_request", [value])
    return tuple(read_behaviour({**everywhere, **each}) for each in behaviours)
