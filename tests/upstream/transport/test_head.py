"""The head of a request: what stands in it, and what never does."""

from __future__ import annotations

import pytest

from gateway.upstream.transport.head import Site, written_head
from gateway.upstream.transport.upload import Pieces
from tests.upstream.transport.wire import post


async def test_the_head_is_what_was_given_behind_the_host() -> None:
    site = Site.of("http://engine:8000/engines/a", tls=True, server_name=None)
    headers = [("Content-Type", "application/json"), ("X-A", "1"), ("x-a", "ü\t2")]
    head = written_head(post(b"{}", path="/v1/x", query="a=%20b"), site, headers, Pieces([b"{}"], 2))
    assert head.decode().split("\r\n") == [
        "POST /engines/a/v1/x?a=%20b HTTP/1.1", "Host: engine:8000", "Content-Type: application/json", "X-A: 1",
        "x-a: ü\t2", "Content-Length: 2", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("root", "host"),
    [("http://engine", "engine"), ("https://engine:443", "engine"), ("http://[::1]:8000", "[::1]:8000")],
)
async def test_the_host_names_the_port_unless_it_is_the_usual_one(root: str, host: str) -> None:
    head = written_head(post(method="GET", path="/health"), Site.of(root, tls=True, server_name=None), [], None)
    assert head == f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@pytest.mark.parametrize(("method", "framed"), [("POST", True), ("DELETE", True), ("GET", False), ("HEAD", False)])
async def test_no_body_is_said_where_one_could_be(method: str, framed: bool) -> None:
    site = Site.of("http://engine", tls=True, server_name=None)
    assert (b"\r\nContent-Length: 0\r\n" in written_head(post(method=method), site, [], None)) == framed


@pytest.mark.parametrize("bad", ["a\r\nX-B: 1", "a\nb", "a\rb", "a\0b", "a\x7f", "\x1b"])
async def test_nothing_ends_a_line_early(bad: str) -> None:
    site = Site.of("http://engine", tls=True, server_name=None)
    with pytest.raises(ValueError, match="control character"):
        written_head(post(), site, [("X-A", bad)], None)
    with pytest.raises(ValueError, match="control character"):
        written_head(post(path=f"/{bad}"), site, [], None)
