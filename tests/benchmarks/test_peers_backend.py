"""The peers' benchmark's backend and asker, against each other: real sockets, no peer."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from benchmarks.contenders import Contender
from benchmarks.peers.asking import Answer, Askers, ask_once, request, send_raw
from benchmarks.peers.backend import orders
from benchmarks.peers.bodies import TEXT, image_body, stream
from benchmarks.peers.line_up import backend


@pytest.fixture(scope="module")
def direct() -> Iterator[Contender]:
    with backend() as (port, process):
        yield Contender("direct", port, process.pid, {})


def test_orders_are_found_at_the_end_of_a_body() -> None:
    assert orders(b'words [[events=200 gap_us=0]]"}]}') == {"events": 200, "gap_us": 0}
    assert orders(b"words [[no orders]]") == {}


def test_answers_are_read_to_their_end_however_they_are_framed() -> None:
    by_length, by_chunks, by_end = Answer(), Answer(), Answer()
    assert not by_length.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
    assert by_length.feed(b"cd")
    assert not by_chunks.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n")
    assert not by_chunks.feed(b"\r\n4\r\nabcd\r\n0")
    assert by_chunks.feed(b"\r\n\r\n")
    assert not by_end.feed(b"HTTP/1.1 500 No\r\nX-Y: z\r\n\r\nabcd")
    assert by_end.feed(b"")
    assert (by_length.complete, by_chunks.complete, by_end.complete) == (True, True, True)
    assert (by_end.status, by_end.header("x-y"), bytes(by_end.body)) == (500, "z", b"abcd")


def test_an_answer_that_is_cut_is_not_complete() -> None:
    answer = Answer()
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
    assert answer.feed(b"")
    assert not answer.complete


def test_many_at_a_time_are_all_answered(direct: Contender) -> None:
    askers = Askers(direct, 7)
    try:
        assert len(askers.ask(lambda _: TEXT, 50)) == 50
        large = image_body(b"\xff" * 1_000_000, "[[picture=5]]")
        assert len(askers.ask(lambda _: large, 8)) == 8
    finally:
        askers.close()
    with urllib.request.urlopen(f"http://127.0.0.1:{direct.port}/bench/seen") as answer:
        assert json.load(answer) == [5] * 8


def test_streams_are_whole_or_cut_as_ordered(direct: Contender) -> None:
    whole, cut = ask_once(direct, stream(20, 0)), ask_once(direct, stream(20, 100, cut=10))
    assert (whole.complete, whole.body.count(b'"word '), whole.body.count(b"[DONE]")) == (True, 20, 1)
    assert (cut.complete, cut.body.count(b'"word ')) == (False, 10)


def test_a_chunked_request_and_a_path_that_engines_do_not_have(direct: Contender) -> None:
    chunked = b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert send_raw(direct.port, chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(TEXT), TEXT)).status == 200
    other = request(direct, TEXT).replace(b"/v1/chat/completions", b"/v1/nothing")
    assert send_raw(direct.port, other).status == 404
