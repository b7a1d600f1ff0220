"""What is heard on a wire: heads and bodies however they are cut, and what may have run."""

from __future__ import annotations

import pytest

from tests.chaos.overheard import Eavesdropper, Ledger


def request(request_id: str, body: bytes = b"0123456789") -> bytes:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nX-Request-ID: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


CHUNKED = b"POST /v1/x HTTP/1.1\r\nx-request-id: c\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED += b"5\r\nhello\r\n3;a=b\r\n123\r\n0\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REFUSAL = b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nHTTP\r\n0\r\n\r\n"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_messages_are_told_apart_however_they_are_cut(step: int) -> None:
    ledger = Ledger()
    ear = Eavesdropper("b", ledger)
    up = request("a") + b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" + CHUNKED + request("d", b"")
    down = STREAM + ANSWER + REFUSAL + ANSWER
    for at in range(0, len(up), step):
        ear.up(up[at : at + step])
    for at in range(0, len(down), step):
        ear.down(down[at : at + step])
    told = {name: [(each.is_whole, each.status) for each in passages] for name, passages in ledger.passages.items()}
    assert told == {"a": [(True, 200)], "c": [(True, 503)], "d": [(True, 200)]}
    assert [len(ledger.runs(name)) for name in "acd"] == [1, 0, 1]


def test_a_request_that_did_not_come_whole_cannot_have_run() -> None:
    ledger = Ledger()
    Eavesdropper("b", ledger).up(request("a")[:-1])
    assert ledger.reached("a")
    assert not ledger.runs("a")
    Eavesdropper("c", ledger).up(request("a"))
    assert not ledger.executed_twice()
    Eavesdropper("b", ledger).up(request("a"))
    assert ledger.executed_twice() == ["a"]


def test_a_refused_request_may_go_elsewhere() -> None:
    ledger = Ledger()
    ear = Eavesdropper("b", ledger)
    ear.up(request("a"))
    ear.down(REFUSAL)
    ear.gone()
    Eavesdropper("c", ledger).up(request("a"))
    assert not ledger.executed_twice()
