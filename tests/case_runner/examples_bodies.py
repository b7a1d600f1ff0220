"""Examples for what reached the backend and what the client received."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from tests.case_runner import pointer
from tests.case_runner.checks.backend import Forwarded
from tests.case_runner.example import Example
from tests.case_runner.specimens import POINTER, call, chat, data_url, exchange, observation, refused, response


def _forwarded(body: bytes, *headers: tuple[str, str], sent: bytes | None = None) -> Forwarded:
    request = chat() if sent is None else sent
    return Forwarded(call(body, *headers), request, pointer.parse(request))


HEADER_EXAMPLES: dict[str, tuple[Any, list[tuple[str, str]], list[tuple[str, str]]]] = {
    "headers_absent": (["TE"], [], [("te", "trailers")]),
    "headers_equal": ({"X-A": "1"}, [("x-a", "1")], [("x-a", "1"), ("x-a", "2")]),
    "header_values": ({"X-A": ["a", "b"]}, [("x-a", "a, b")], [("x-a", "a")]),
    "header_values_include": ({"Vary": "a"}, [("vary", "b, a")], [("vary", "b")]),
    "header_matches": ({"X-A": "^a+$"}, [("x-a", "aa")], [("x-a", "ab")]),
    "single_framing": (True, [("content-length", "1")], [("content-length", "1"), ("transfer-encoding", "chunked")]),
}
BACKEND_EXAMPLES = {
    "image_count": Example(1, _forwarded(chat(data_url())), _forwarded(chat())),
    "image_count_at_most": Example(1, _forwarded(chat(data_url())), _forwarded(chat(data_url(), data_url()))),
    "images": Example(
        [{"pointer": POINTER, "size": [112, 112]}], _forwarded(chat(data_url())), _forwarded(chat(data_url(28, 28)))
    ),
    "json_equal_except": Example(
        ["/model"], _forwarded(chat(model="b", cache_salt="s")), _forwarded(chat(temperature=1))
    ),
    "body_bytes_equal_request": Example(True, _forwarded(chat()), _forwarded(chat() + b" ")),
    "raw_contains": Example(["0.10"], _forwarded(b'{"t":0.10}'), _forwarded(b'{"t":0.1}')),
    "raw_must_not_contain": Example(["secret"], _forwarded(chat()), _forwarded(chat(x="secret"))),
    "json_values": Example({"/a": "\u00e9"}, _forwarded(b'{"a":"\\u00e9"}'), _forwarded(b'{"a":"e"}')),
    "json_numbers": Example({"/t": "0.1"}, _forwarded(b'{"t":0.10}'), _forwarded(b'{"t":"0.1"}')),
    "absent": Example(["/max_tokens"], _forwarded(chat()), _forwarded(chat(max_tokens=1))),
    "no_duplicate_keys": Example(True, _forwarded(b'{"a":1}'), _forwarded(b'{"a":1,"a":2}')),
    "host_is_backend": Example(True, _forwarded(b"{}", ("host", "127.0.0.1:8000")), _forwarded(b"{}", ("host", "x"))),
    "max_body_bytes": Example(5, _forwarded(b"{}"), _forwarded(b"{      }")),
    **{
        key: Example(wanted, _forwarded(b"{}", *good), _forwarded(b"{}", *bad))
        for key, (wanted, good, bad) in HEADER_EXAMPLES.items()
    },
}


def _received(body: bytes, *headers: tuple[str, str], sent: bytes = b"answer", took_s: float = 0.0) -> Any:
    made = call()
    made.sent_body[:] = sent
    got = exchange(response(200, body, *headers, took_s=took_s), made)
    return observation(got), got


def _broken(body: bytes = b"") -> Any:
    received = _received(body)
    received[1].response.ending = "aborted"
    return received


GZIP = ("content-encoding", "gzip")
CLIENT_EXAMPLES = {
    "body_bytes_equal_backend": Example(True, _received(b"answer"), _received(b"answer ")),
    "ends": Example(["aborted-transfer"], _broken(), _received(b"answer")),
    "within_ms": Example(500, _received(b"", took_s=0.1), _received(b"", took_s=0.6)),
    "first_event_within_ms": Example(500, _received(b"data: 1\n\n", took_s=0.1), _received(b"data: 1\n\n", took_s=2)),
    "status_sent_before_first_event": Example(
        True, _received(b"data: 1\n\n", took_s=0.1), _received(b"data: 1\n\n", took_s=0)
    ),
    "events_equal_backend": Example(
        True, _received(b": ping\ndata: 1\n\n", sent=b"data: 1\n\n"), _received(b"data: 2\n\n", sent=b"data: 1\n\n")
    ),
    "extra_lines_only_match": Example(
        "^(:|$)", _received(b":\ndata: 1\n\n", sent=b"data: 1\n\n"), _received(b"x\ndata: 1\n\n", sent=b"data: 1\n\n")
    ),
    "must_not_contain": Example(["[DONE]"], _received(b""), _received(b"[DONE]")),
    "must_contain": Example(["[DONE]"], _received(b"[DONE]"), _received(b"")),
    "count": Example({"[DONE]": 1}, _received(b"[DONE]"), _received(b"[DONE][DONE]")),
    "count_lines": Example({"data: a": 1}, _received(b"data: a\n"), _received(b"data: a\ndata: a\n")),
    "consistent_encoding": Example(True, _received(gzip.compress(b"a"), GZIP), _received(b"a", GZIP)),
    "decoded_body_sha256_of": Example(
        "__init__", _received(Path(__file__).with_name("__init__.py").read_bytes()), _received(b"")
    ),
    **{
        key: Example(wanted, _received(b"", *good), _received(b"", *bad))
        for key, (wanted, good, bad) in HEADER_EXAMPLES.items()
    },
}  # fmt: skip


def _refusal(**fields: Any) -> Any:
    got = exchange(refused(**fields))
    return observation(got), got


def _logged(text: str) -> Any:
    received = _refusal()
    received[1].log = text
    return received


ERROR_EXAMPLES = {
    "json": Example(True, _refusal(), _received(b"Internal Server Error")),
    "type_any_of": Example(["invalid_request_error"], _refusal(), _refusal(kind="server_error")),
    "type_none_of": Example(["invalid_request_error"], _refusal(kind="server_error"), _refusal()),
    "must_not_contain": Example(["Traceback"], _refusal(), _refusal(message="Traceback (most recent")),
    "must_not_match": Example(["base64,[A-Z]{4}"], _refusal(), _logged("x base64,AAAA")),
}
