"""What follows a refusal: elsewhere, its own answer, or the right error."""

from __future__ import annotations

import pytest

from gateway.errors import BackendUnreachable, NoBackend, NotTaken
from gateway.record import ExchangeRecord
from gateway.routing.ask import RouteAsk
from gateway.stages.elsewhere import go_on, told
from gateway.types import BackendName, RequestId
from tests.journey.books import Books
from tests.journey.fakes import FakeResponse, FakeUpstream, view

A = BackendName("a")


def upstream(*names: str, retries: int = 1) -> FakeUpstream:
    return FakeUpstream(Books(), [view(name) for name in names], [], retries)


def record() -> ExchangeRecord:
    return ExchangeRecord(RequestId("r"), "openai_chat", "/", 0.0)


def test_it_goes_to_another_backend_and_the_refusal_is_closed() -> None:
    books, kept = Books(), record()
    answer = FakeResponse(books.hand_out("response"), 503, (), [])
    refusal = NotTaken("refused", "full", answer)
    ask, response = go_on(refusal, A, RouteAsk(), upstream("a", "b"), kept)
    assert (ask.excluded, response, kept.retry_reasons, kept.stranded) == (frozenset({A}), None, ["refused"], None)
    assert books.endings("response") == ["closed"]


@pytest.mark.parametrize(
    ("names", "retries", "is_whole", "why"),
    [("a", 1, True, "nowhere"), ("ab", 0, True, "budget"), ("ab", 1, False, "sent")],
)
def test_with_nowhere_to_go_its_own_answer_is_relayed(names: str, retries: int, is_whole: bool, why: str) -> None:
    kept = record()
    answer = FakeResponse(Books().hand_out("response"), 503, (), [])
    refusal = NotTaken("refused", "full", answer)
    _, response = go_on(refusal, A, RouteAsk(), upstream(*names, retries=retries), kept, is_whole=is_whole)
    assert response is answer
    assert kept.stranded == why


def test_without_an_answer_the_error_has_the_right_status() -> None:
    with pytest.raises(BackendUnreachable):
        go_on(NotTaken("connect"), A, RouteAsk(), upstream("a"), record())
    with pytest.raises(NoBackend) as caught:
        go_on(NotTaken("refused", "in a stream"), A, RouteAsk(), upstream("a"), record())
    assert (caught.value.status, caught.value.retry_after_s) == (503, 1.0)
    assert told(NotTaken("body_not_sent")).status == 502
