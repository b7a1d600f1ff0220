"""The checker finds each kind of broken promise among answers, and excuses only what a fault excuses."""

from __future__ import annotations

import json

import pytest

from tests.chaos.answers import Answer, Kind, Question
from tests.chaos.invariants import MAY_HAVE_RUN, MIB, Excuse, Standing, judge, memory_limit_bytes
from tests.chaos.overheard import Ledger, Passage

NONE = Excuse()
LOST = json.dumps({"error": {"message": "Lost.", "type": "service_unavailable_error", "code": "backend_lost"}}).encode()


def ledger(**passages: tuple[bool, int]) -> Ledger:
    """``name=(whole, status)``; two runs of one id by a name with an underscore behind it."""
    made = Ledger()
    for name, (whole, status) in passages.items():
        request_id = name.rstrip("_")
        made.passages[request_id].append(Passage(request_id, "b", whole, status))
    return made


def good(request_id: str = "a", kind: Kind = Kind.TEXT) -> Answer:
    body = {"choices": [{"message": {"content": "said words"}, "finish_reason": "stop"}]}
    return Answer(Question(request_id, kind, "words"), 1.0, 2.0, 200, {}, json.dumps(body).encode())


def failed(status: int = 502, code: str = "backend_lost", kind: Kind = Kind.TEXT) -> Answer:
    return Answer(Question("a", kind, "words"), 1.0, 2.0, status, {"x-vlmgw-error": code}, LOST)


def lost(how: str) -> Answer:
    return Answer(Question("a", Kind.TEXT, "words"), 1.0, 2.0, lost=how)


def test_a_right_answer_that_ran_once_is_what_is_wanted() -> None:
    assert judge([good()], ledger(a=(True, 200)), NONE) == []


@pytest.mark.parametrize(
    ("answer", "passages", "excuse", "told"),
    [
        (good(), {}, NONE, "no backend ran it"),
        (good(), {"a": (True, 200), "a_": (True, 0)}, NONE, "more than once"),
        (failed(), {"a": (True, 0)}, NONE, "without an excuse"),
        (failed(), {}, Excuse(MAY_HAVE_RUN), "no backend ever saw them"),
        (failed(), {"a": (True, 0)}, Excuse(MAY_HAVE_RUN, until_s=0.5), "without an excuse"),
        (failed(429, "in_flight_exhausted"), {}, NONE, "without an excuse"),
        (failed(500, "gateway_bug"), {}, Excuse(MAY_HAVE_RUN), "without an excuse"),
        (lost("broken: reset"), {}, NONE, "lost"),
        (lost("refused: nobody"), {}, Excuse(losses=True), "lost"),
        (lost("broken: reset"), {}, Excuse(losses=True, until_s=0.5), "lost"),
    ],
)
def test_broken_promises(answer: Answer, passages: dict[str, tuple[bool, int]], excuse: Excuse, told: str) -> None:
    found = judge([answer], ledger(**passages), excuse)
    assert any(told in each for each in found), found


@pytest.mark.parametrize(
    ("answer", "excuse"),
    [
        (failed(), Excuse(MAY_HAVE_RUN)),
        (failed(429, "in_flight_exhausted", Kind.BUDGET), NONE),
        (lost("broken: reset"), Excuse(losses=True)),
        (lost("refused: nobody"), Excuse(refusals=True)),
    ],
)
def test_excused(answer: Answer, excuse: Excuse) -> None:
    assert judge([answer], ledger(a=(True, 0)), excuse) == []


def test_a_stream_whose_backend_was_lost_may_be_cut() -> None:
    cut = Answer(Question("a", Kind.STREAM, "words"), 1.0, 2.0, 200, lost="broken: payload")
    assert judge([cut], ledger(a=(True, 200)), Excuse(MAY_HAVE_RUN)) == []
    assert judge([cut], ledger(a=(True, 200)), NONE)
    assert judge([cut], ledger(), Excuse(MAY_HAVE_RUN)), "no backend had it"
    cut.status = 0
    assert judge([cut], ledger(a=(True, 0)), Excuse(MAY_HAVE_RUN)), "nothing had begun"


def test_many_violations_are_told_in_part() -> None:
    found = judge([good(f"r{number}") for number in range(40)], ledger(), NONE)
    assert len(found) == 13
    assert found[-1] == "and 28 more of the kind"


def test_the_bound_of_memory() -> None:
    assert memory_limit_bytes(Standing(10, 200 * MIB)) == 396 * MIB
