"""Whose fault an answer is, and how long to leave its sender alone."""

from __future__ import annotations

import pytest

from gateway.upstream.blame import is_engines_fault, rest_s

# Contract of vLLM 0.32.0, section 5: what clients cause and engines answer with 5xx.
CLIENT_CAUSED = (
    (500, b"Image size (180000000 pixels) exceeds limit of 178956970 pixels, could be decompression bomb DOS attack."),
    (500, b"Cannot load local files without `--allowed-local-media-path`."),
    (501, b"Only base64 data URLs are supported for now."),
    (500, b"Cannot connect to host 127.0.0.1:9 ssl:default [Connect call failed]"),
    (500, b"429, message='Too Many Requests'"),
    (500, b"Server disconnected"),
    (500, b"Invalid magic number; corrupt file?"),
    (500, b""),
    (400, b"EngineCore encountered an issue."),
)


@pytest.mark.parametrize(("status", "body"), CLIENT_CAUSED)
def test_what_a_client_may_have_caused_blames_no_engine(status: int, body: bytes) -> None:
    assert not is_engines_fault(status, body)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause."}}'),
        (500, b"CUDA error: an illegal memory access was encountered"),
        (502, b""),
        (503, b"no healthy upstream"),
        (504, b""),
    ],
)
def test_what_only_a_broken_engine_says(status: int, body: bytes) -> None:
    assert is_engines_fault(status, body)


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (503, "2", 2.0),
        (429, " 7 ", 7.0),
        (503, "600", 30.0),
        (503, "99999999999999999999", 30.0),
        (503, "Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        (503, "Thu, 01 Jan 1970 00:00:50 GMT", None),
        (503, "soon", None),
        (503, "0", None),
        (503, "-3", None),
        (503, None, None),
        (500, "2", None),
        (200, "2", None),
    ],
)
def test_retry_after(status: int, value: str | None, seconds: float | None) -> None:
    assert rest_s(status, value, 1000.0, 30.0) == seconds
