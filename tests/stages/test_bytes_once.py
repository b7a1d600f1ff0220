"""Which images go as their ids alone, and what an answer says of that; the replay itself is struck in the journey."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.policy.effective import BytesOnce
from gateway.ports import UpstreamRequest, UpstreamResponse
from gateway.record import ExchangeRecord
from gateway.routing.sent_ids import DEFAULT_CAPACITY_BYTES, SentIds
from gateway.stages.bytes_once import PATCH_BYTES, Courier, takes_ids_alone, weight_bytes
from gateway.types import BackendView, Change, EngineKind, RequestId, Size
from tests.journey.books import Books
from tests.journey.driver import drive
from tests.journey.fakes import Answer, FakeResponse, FakeUpstream, facts, view
from tests.policy.examples import policy
from tests.stages.test_identities import PLAN

VIEW = view("a")
WITH_IDS = UpstreamRequest("POST", "/", "", (), (b"ids",), 3)
WHOLE = UpstreamRequest("POST", "/", "", (), (b"bytes",), 5)
MISS = b'{"error":{"message":"Cache miss for image at index 0 but data is not provided."}}'
DRIFT = b'{"error":{"message":"Internal server error"}}'
OK = Answer(pieces=(b"{}",))


class Run:
    """One request with two images, ``x`` and ``y``, the second untouched, against scripted answers."""

    def __init__(self, belief: SentIds, *answers: Answer, backend: BackendView = VIEW, auto: bool = True) -> None:
        self.books = Books()
        self.record = ExchangeRecord(RequestId("r"), "d", "/", 0.0, image_bytes_out=5_000)
        self.upstream = FakeUpstream(self.books, [backend], answers, 0)
        plans = [PLAN, replace(PLAN, changes=())]
        effective = policy(bytes_once=BytesOnce.AUTO if auto else BytesOnce.NEVER)
        courier = Courier(belief, effective, ("x", "y"), [facts(), facts(number=1)], plans, self.record)
        self.marks = courier.marks(backend)
        self.response: UpstreamResponse | None = None

        async def forward() -> None:
            self.response = await courier.forward(self.upstream, backend, self.marks, WITH_IDS, self._whole)

        drive(forward())

    async def _whole(self) -> UpstreamRequest:
        return WHOLE

    @property
    def sent(self) -> list[bytes]:
        return [body for _, _, body in self.upstream.sent]

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.record.image_ids_sent, self.record.image_ids_alone, self.record.image_ids_missed

    def body(self) -> bytes:
        """What the client would get."""
        assert self.response is not None
        pieces: list[bytes] = []
        response = self.response

        async def read() -> None:
            while chunk := await response.chunk():
                pieces.append(chunk)

        drive(read())
        response.close()
        assert self.books.still_open == []
        return b"".join(pieces)


def test_first_with_bytes_then_without() -> None:
    belief = SentIds()
    first, second = Run(belief, OK), Run(belief, OK)
    assert (first.marks.withheld, second.marks.withheld) == (frozenset(), frozenset({0, 1}))
    assert (first.counts, second.counts) == ((2, 0, 0), (2, 2, 0))
    # The untouched one had been counted with the bytes that it came with.
    assert (first.record.image_bytes_out, second.record.image_bytes_out) == (5_000, 5_000 - 1_001)
    assert second.sent == [b"ids"]


def test_two_at_once_both_bring_the_bytes() -> None:
    """Nobody waits for another's answer: what is held is known once it came."""
    belief, records = SentIds(), [ExchangeRecord(RequestId("r"), "d", "/", 0.0) for _ in range(2)]
    couriers = [Courier(belief, policy(), ("x",), [facts()], [PLAN], record) for record in records]
    assert [courier.marks(VIEW).withheld for courier in couriers] == [frozenset(), frozenset()]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_nothing_is_learnt_from_a_refusal(status: int) -> None:
    belief = SentIds()
    run = Run(belief, Answer(status, pieces=(b"{}",)))
    assert run.sent == [b"ids"]
    assert run.body() == b"{}"
    assert Run(belief, OK).marks.withheld == frozenset()


@pytest.mark.parametrize("answer", [Answer(400, pieces=(MISS[:9], MISS[9:])), Answer(500, pieces=(DRIFT,))])
def test_a_miss_is_replayed_and_believed(answer: Answer) -> None:
    belief = SentIds()
    Run(belief, OK)
    run = Run(belief, answer, Answer(pieces=(b"whole",)))
    assert run.sent == [b"ids", b"bytes"]
    assert run.body() == b"whole"
    assert run.counts == (2, 0, 2)
    assert (run.record.attempts, run.record.retry_reasons) == (1, ["cache_miss"])
    assert Run(belief, OK).marks.withheld == frozenset({0, 1})


def test_another_refusal_is_asked_again_and_the_second_answer_is_the_clients() -> None:
    belief = SentIds()
    Run(belief, OK)
    run = Run(belief, Answer(400, pieces=(b"images: [None]",)), Answer(400, pieces=(b"temperature",)))
    assert run.body() == b"temperature"
    assert run.counts == (0, 0, 0)
    assert Run(belief, OK).marks.withheld == frozenset({0, 1}), "the request was wrong, not the belief"


@pytest.mark.parametrize("status", [400, 422])
def test_an_engine_that_takes_no_ids_is_found_out_whatever_it_says(status: int) -> None:
    belief = SentIds()
    Run(belief, OK)
    for _ in range(4):
        assert Run(belief, Answer(status, pieces=(b"field required",)), OK).record.image_ids_missed == 2
    assert Run(belief, OK).marks.withheld == frozenset()


def test_misses_cannot_be_feigned_by_what_an_engine_repeats() -> None:
    """Else one client could take the belief in a whole cache from everybody."""
    repeated = json.dumps({"error": {"message": 'Input should be a number: "message":"Cache miss for image"'}}).encode()
    belief = SentIds()
    Run(belief, OK)
    for _ in range(8):
        run = Run(belief, Answer(400, pieces=(repeated,)), Answer(400, pieces=(repeated,)))
        assert run.body() == repeated
    assert Run(belief, OK).marks.withheld == frozenset({0, 1})


def test_an_error_of_another_kind_is_the_clients() -> None:
    belief = SentIds()
    Run(belief, OK)
    long = tuple(b"x" * 30_000 for _ in range(5))
    run = Run(belief, Answer(500, pieces=long))
    assert run.sent == [b"ids"]
    assert run.body() == b"".join(long)
    assert run.response is not None
    assert (run.response.status, run.response.content_length) == (500, 150_000)
    assert dict(run.response.headers)["Content-Type"] == "application/json"


def test_an_error_that_breaks_off_is_closed() -> None:
    belief = SentIds()
    Run(belief, OK)

    class Broken(FakeResponse):
        async def chunk(self) -> bytes:
            raise ConnectionResetError

    class Breaking(FakeUpstream):
        def _answer(self) -> FakeResponse:
            return Broken(books.hand_out("response"), 400, (), ())

    books = Books()
    record = ExchangeRecord(RequestId("r"), "d", "/", 0.0)
    courier = Courier(belief, policy(), ("x",), [facts()], [PLAN], record)

    async def whole() -> UpstreamRequest:
        raise AssertionError("the answer was never read")

    marks = courier.marks(VIEW)
    ride = drive(_ignored(courier.forward(Breaking(books, [VIEW], (), 0), VIEW, marks, WITH_IDS, whole)))
    assert isinstance(ride.escaped, ConnectionResetError)
    assert books.still_open == []


async def _ignored(work: object) -> None:
    await work  # type: ignore[misc] # a coroutine of any result


VIEWS: Sequence[tuple[BackendView, bool]] = [
    (VIEW, True),
    (view("a", engine=EngineKind.SGLANG), False),
    (view("a", engine=EngineKind.GENERIC, takes_ids=True), False),
    (view("a", api_servers=1), True),
    (view("a", api_servers=2), False),
    (view("a", api_servers=2, takes_ids=True), True),
    (view("a", takes_ids=False), False),
    (view("a", image_cache_bytes=0), False),
    (view("a", image_cache_bytes=1 << 30), True),
]


@pytest.mark.parametrize(("backend", "expected"), VIEWS)
def test_who_answers_for_what_it_was_sent(backend: BackendView, *, expected: bool) -> None:
    assert takes_ids_alone(backend) is expected
    belief = SentIds()
    Run(belief, OK, backend=backend)
    assert Run(belief, OK, backend=backend).marks.withheld == (frozenset({0, 1}) if expected else frozenset())


def test_a_policy_may_send_bytes_always() -> None:
    belief = SentIds()
    Run(belief, OK)
    run = Run(belief, OK, auto=False)
    assert (run.marks.ids, run.marks.withheld) == (("x", "y"), frozenset())


def test_a_backend_that_came_back_gets_bytes() -> None:
    belief = SentIds()
    Run(belief, OK)
    assert Run(belief, OK, backend=view("a", returns=1)).marks.withheld == frozenset()


def test_the_cache_is_filled_by_what_the_engine_keeps_of_a_picture() -> None:
    assert weight_bytes(PLAN) == 4 * PATCH_BYTES
    unknown = replace(PLAN, target=Size(10, 10), after=replace(PLAN.after, vit_patches=0))
    assert weight_bytes(unknown) == 100 * 3 * 2 * 4
    # A photograph under the usual cap: 1312 x 960 in patches of 16 x 16, float32, as vLLM 0.32.0 logs it.
    photograph = replace(PLAN, after=replace(PLAN.after, vit_patches=4920), changes=(Change.RESIZED,))
    assert DEFAULT_CAPACITY_BYTES // weight_bytes(photograph) == 142
    belief, small = SentIds(), view("a", image_cache_bytes=PATCH_BYTES)
    Run(belief, OK, backend=small)
    assert Run(belief, OK, backend=small).marks.withheld == frozenset()
