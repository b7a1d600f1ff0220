"""What answers teach routing."""

from __future__ import annotations

import pytest

from gateway.record import ExchangeRecord
from gateway.routing.ask import Ahead, Decision
from gateway.routing.holding import Holding
from gateway.stages.observing import cost_there, observe
from gateway.types import BackendName, RequestCost, RequestId, Usage
from tests.journey.books import Books
from tests.journey.fakes import FakeUpstream

A = BackendName("a")
DECISION = Decision(A, "u", "holds_prefix", Holding(0, 0, 600), Ahead(500, 50, 400, 40, 0.1))


def record(**facts: object) -> ExchangeRecord:
    made = ExchangeRecord(RequestId("r"), "d", "/", 0.0, stream=True, forwarded_s=1.0, first_chunk_s=3.0, status=200)
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def observed(**facts: object) -> FakeUpstream:
    upstream = FakeUpstream(Books(), (), (), 0)
    observe(upstream, DECISION, record(**facts))
    return upstream


def test_a_stream_tells_the_pace_by_what_was_ahead_and_its_own() -> None:
    assert observed().paces == [(A, 900, 90, 2.0)]
    told = observed(usage=Usage(1000, 5, cached_tokens=900))
    assert (told.paces, told.corrected) == ([(A, 600, 90, 2.0)], [(A, DECISION.holding, 900)])


@pytest.mark.parametrize("facts", [{"stream": False}, {"first_chunk_s": None}, {"forwarded_s": None}, {"status": 400}])
def test_other_answers_tell_nothing_of_pace(facts: dict[str, object]) -> None:
    assert observed(**facts).paces == []


def test_what_is_held_there_is_no_load_and_only_streams_tell_their_first_token() -> None:
    cost = cost_there(RequestCost(1000, 50, 400), DECISION, streams=True)
    assert cost == RequestCost(1000, 50, 40, cached_tokens=600)
    assert cost_there(RequestCost(1000, 50, 400), DECISION, streams=False).first_token_s == 0.1
