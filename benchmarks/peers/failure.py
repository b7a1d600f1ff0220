"""What a client sees when something is wrong: a backend that dies in a stream, none that listens, too large a body.

And what a backend sees of a request's fields that OpenAI's API does not have but engines do. Two backends. Recovery:
all backends are down until every contender has refused for a while, come back on the same ports, and every contender
is asked ten times a second until it answers 200. All contenders are in the same outage.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.contenders import Contender, stop
from benchmarks.peers.asking import Answer, ask_once, send_raw
from benchmarks.peers.bodies import TEXT, stream
from benchmarks.peers.line_up import Site, backend
from benchmarks.stub import MODEL

_EVENTS, _CUT = 200, 100
_TOO_LARGE_BYTES = 2 << 30
_SILENCE_S = 3.0
_OUTAGE_S = 6.0
_RECOVERY_LIMIT_S = 90.0
_POLL_S = 0.1
_OK = 200
# Fields of vLLM and SGLang beyond OpenAI's: of the request, of a part, of an image's address.
_FIELDS: dict[str, object] = {
    "mm_processor_kwargs": {"max_pixels": 1_003_520},
    "cache_salt": "salt",
    "priority": 3,
    "rid": "r" * 32,
    "session_id": "s-1",
    "a_field_of_tomorrow": True,
}


def measure(place: Site) -> dict[str, dict[str, object]]:
    """By contender, everything but recovery. Leaves all backends running."""
    found: dict[str, dict[str, object]] = {}
    for contender in place.contenders:
        found[contender.name] = {
            "fields_lost": _fields_lost(place, contender),
            "dies_in_stream": _cut(contender),
            "too_large": _too_large(contender),
        }
    return found


def _fields_lost(place: Site, contender: Contender) -> list[str]:
    words = f"What does {contender.name} leave of this?"
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": words}], **_FIELDS}).encode()
    answer = ask_once(contender, body)
    if answer.status != _OK:
        return [f"refused with {answer.status}"]
    arrived = next(found for port, _ in place.backends if words in json.dumps(found := _last(port)))
    return sorted(name for name, value in _FIELDS.items() if arrived.get(name) != value)


def _last(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/bench/last", timeout=10) as answer:
        body: dict[str, Any] = json.loads(json.load(answer)["body"] or "{}")
        return body


def _cut(contender: Contender) -> dict[str, object]:
    """A stream of 200 whose backend is gone after 100."""
    answer = ask_once(contender, stream(_EVENTS, 1_000, cut=_CUT))
    return {
        "events": answer.body.count(b'"word '),
        "error_event": b'"error"' in answer.body,
        "ended_cleanly": answer.complete,
    }


def _too_large(contender: Contender) -> dict[str, object]:
    """The head of a request that announces 2 GiB."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in contender.headers.items())
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"{lines}Content-Length: {_TOO_LARGE_BYTES}\r\n\r\n{{"
    )
    try:
        return _seen(send_raw(contender.port, head.encode(), _SILENCE_S))
    except OSError:
        return {"status": 0, "type": f"reads on (no answer within {_SILENCE_S:.0f} s)"}


def _seen(answer: Answer) -> dict[str, object]:
    return {"status": answer.status, "type": answer.header("content-type").partition(";")[0]}


def outage(place: Site) -> tuple[dict[str, dict[str, object]], dict[str, float | None]]:
    """What each answers while no backend listens, and seconds until it answers 200 once they do again."""
    ports = [port for port, _ in place.backends]
    for _, process in place.backends:
        stop(process)
    refusals = _refusals(place.contenders, [f"127.0.0.1:{port}" for port in ports])
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(backend(port))
        return refusals, _recovery(place.contenders)


def _refusals(contenders: Sequence[Contender], addresses: Sequence[str]) -> dict[str, dict[str, object]]:
    """The last answer of each in an outage long enough for every circuit to open."""
    found: dict[str, dict[str, object]] = {}
    until_s = time.monotonic() + _OUTAGE_S
    while time.monotonic() < until_s:
        for contender in contenders:
            began_s = time.monotonic()
            answer = ask_once(contender, TEXT)
            found[contender.name] = {
                **_seen(answer),
                "retry_after": answer.header("retry-after") or None,
                "names_backend": any(address.encode() in answer.body for address in addresses),
                "after_s": round(time.monotonic() - began_s, 2),
            }
    return found


def _recovery(contenders: Sequence[Contender]) -> dict[str, float | None]:
    began_s = time.monotonic()
    found: dict[str, float | None] = dict.fromkeys((contender.name for contender in contenders), None)
    while time.monotonic() - began_s < _RECOVERY_LIMIT_S and None in found.values():
        for contender in contenders:
            if found[contender.name] is None and ask_once(contender, TEXT).status == _OK:
                found[contender.name] = round(time.monotonic() - began_s, 2)
        time.sleep(_POLL_S)
    return found
