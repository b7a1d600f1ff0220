"""Observations made by hand, for tests that the checks see what is wrong."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path
from typing import Any

from tests.case_runner.backend import BackendCall
from tests.case_runner.behaviour import Behaviour
from tests.case_runner.http_client import Response
from tests.case_runner.observation import Exchange, Observation, Scope
from tests.case_runner.origin import OriginCall
from tests.case_runner.pictures import flat_png
from tests.case_runner.wire import Head, Wire

CHAT = "/v1/chat/completions"
POINTER = "/messages/0/content/0/image_url/url"
RED = (220, 30, 30)


def data_url(width: int = 112, height: int = 112, rgb: tuple[int, int, int] = RED) -> str:
    """A picture of one colour."""
    return "data:image/png;base64," + base64.b64encode(flat_png(width, height, rgb)).decode()


def chat(*urls: str, **more: Any) -> bytes:
    """A chat request with these pictures."""
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content: Any = parts or "hello"
    return json.dumps({"model": "vl-test", "messages": [{"role": "user", "content": content}], **more}).encode()


def head(*headers: tuple[str, str], line: str = "HTTP/1.1 200 OK") -> Head:
    """A head."""
    raw = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers)])
    return Head(line, headers, raw.encode("latin-1"))


def closed_wire(at_s: float | None = 0.0) -> Wire:
    """A connection that was closed at that time, or is still open."""
    sock = socket.socket()
    sock.close()
    return Wire(sock, closed_at_s=at_s)


def call(
    body: bytes = b"", *headers: tuple[str, str], replica: int = 0, closed_at_s: float | None = 0.0
) -> BackendCall:
    """A request as a backend got it."""
    first = head(*headers, line=f"POST {CHAT} HTTP/1.1")
    made = BackendCall(replica, first, body, 0.0, closed_wire(closed_at_s), Behaviour(), 8000)
    made.sent_body += b"answer"
    return made


def response(status: int | None = 200, body: bytes = b"", *headers: tuple[str, str], took_s: float = 0.0) -> Response:
    """An answer that took so long."""
    made = Response(100.0, ended_at_s=100.0 + took_s, body=bytearray(body), arrivals=[(100.0 + took_s, len(body))])
    if status is None:
        made.ending = "no-response"
    else:
        made.head, made.head_at_s = head(*headers, line=f"HTTP/1.1 {status} Status"), 100.0
    return made


def refused(status: int = 400, message: str = "no", kind: str = "invalid_request_error") -> Response:
    """An error in OpenAI's envelope."""
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": "bad"}}).encode()
    return response(status, body)


def exchange(answer: Response | None = None, *calls: BackendCall, sent: bytes = b"", role: str = "step") -> Exchange:
    """One request of the runner."""
    return Exchange(1, sent, answer or response(), list(calls), role=role)


def observation(*exchanges: Exchange, path: str = CHAT) -> Observation:
    """A case in which this was seen."""
    seen = Observation(Path(__file__).parent, path, exchanges=list(exchanges))
    seen.calls = [each for made in exchanges for each in made.calls]
    return seen


def scope(*exchanges: Exchange, **seen: Any) -> Scope:
    """The whole of such a case; ``seen`` sets further fields of the observation."""
    made = observation(*exchanges)
    for name, value in seen.items():
        setattr(made, name, value)
    return Scope(made, made.exchanges)


def origin_call(target: str, *headers: tuple[str, str], closed_at_s: float | None = 0.0) -> OriginCall:
    """A request as the origin got it."""
    return OriginCall(target, head(*headers, line=f"GET {target} HTTP/1.1"), 0.0, closed_wire(closed_at_s))
