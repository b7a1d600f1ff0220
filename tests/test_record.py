"""One exchange's head and facts."""

from __future__ import annotations

from gateway.record import ExchangeRecord, RequestHead
from gateway.types import RequestId


def head(*headers: tuple[str, str]) -> RequestHead:
    return RequestHead(
        method="POST",
        path="/v1/chat/completions",
        query="",
        headers=headers,
        content_length=None,
        request_id=RequestId("r1"),
    )


def test_a_header_is_found_whatever_its_spelling_and_the_first_counts() -> None:
    received = head(("Host", "a"), ("X-Vlmgw-Task", "ocr"), ("x-vlmgw-task", "chat"))
    assert received.header("x-vlmgw-task") == "ocr"
    assert received.headers[1][0] == "X-Vlmgw-Task"


def test_a_header_that_did_not_come_is_none_and_an_empty_one_is_empty() -> None:
    assert head().header("accept") is None
    assert head(("Accept", "")).header("accept") == ""


def test_records_of_two_exchanges_share_nothing() -> None:
    first = ExchangeRecord(request_id=RequestId("a"), dialect="openai_chat", path="/", started_s=0.0)
    second = ExchangeRecord(request_id=RequestId("b"), dialect="openai_chat", path="/", started_s=0.0)
    first.stages.append(("read", 0.001))
    first.changes["resized"] = 1
    first.findings.append("image_tokens")
    assert (second.stages, second.changes, second.findings) == ([], {}, [])


def test_images_that_are_left_out_do_not_go_on() -> None:
    record = ExchangeRecord(request_id=RequestId("a"), dialect="openai_chat", path="/", started_s=0.0)
    assert record.images == 0
    record.images_passed, record.images_shrunk, record.images_recoded, record.images_omitted = 1, 2, 4, 8
    assert record.images == 7
