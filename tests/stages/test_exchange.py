"""The frame of an exchange: answered once, recorded once; and what its record takes from each stage."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.errors import (
    BackendLost,
    Draining,
    GatewayBug,
    GatewayError,
    ImageWorkerLost,
    KvBudgetExhausted,
    NotTaken,
    RateExceeded,
    TooManyImages,
    all_errors,
)
from gateway.ports import PreparedResult
from gateway.quota.claim import Charge, Unit
from gateway.quota.gcra import Rate
from gateway.quota.standing import Standing
from gateway.routing.ask import Decision
from gateway.routing.holding import Holding
from gateway.stages.exchange import (
    Watch,
    conclude,
    new_record,
    note_decision,
    note_facts,
    note_plans,
    note_prepared,
    note_reservation,
    outcome_of,
    refuse,
    refused_answer,
)
from gateway.types import BackendName, Change, EngineKind, ImageFormat, Prepared, Size
from tests.journey.driver import Ride, drive
from tests.journey.fake_budgets import FakeReservation
from tests.journey.fakes import FakeClock, Scene, facts, view
from tests.journey.scenes import SETTINGS
from tests.journey.test_strikes import OUTCOMES
from tests.models.test_plan import RULES, plan

STANDING = Standing((Charge(Unit.IMAGES, 1, Rate(10, 60)),), (0,))


async def fail(error: BaseException | None) -> None:
    if error is not None:
        raise error


def concluded(error: BaseException | None, *, left: bool = False, started: bool = False) -> tuple[Scene, Ride]:
    scene = SETTINGS["text"].scene()
    scene.client.left, scene.client.started = left, started
    ports = scene.ports
    record = new_record(scene.client, "openai_chat", ports.clock)
    return scene, drive(conclude(scene.client, ports, record, fail(error)))


def test_an_exchange_that_ends_well_is_recorded() -> None:
    scene, came = concluded(None)
    assert (scene.record.outcome, came.escaped, scene.client.refusals) == ("ok", None, [])
    assert scene.record.ended_s is not None


def test_a_refusal_is_answered_and_noted() -> None:
    error = TooManyImages(detail="policies/x.yaml:3")
    scene, _ = concluded(error)
    record = scene.record
    assert (record.outcome, record.code, record.status, record.detail) == (
        "rejected", "too_many_images", 400, "policies/x.yaml:3",
    )  # fmt: skip
    assert scene.client.refusals == [error]


def test_a_refusal_tells_how_the_tenant_stands_in_its_dialects_headers() -> None:
    error = RateExceeded(rule="rates.images", retry_after_s=3.0)
    error.standing = STANDING
    scene, _ = concluded(error)
    assert (scene.record.outcome, scene.record.rule) == ("shed", "rates.images")
    assert ("x-ratelimit-remaining-images", "10") in error.headers


def test_what_fails_after_it_was_charged_tells_it_too() -> None:
    error, scene = BackendLost(), SETTINGS["text"].scene()
    record = new_record(scene.client, "openai_chat", FakeClock())
    record.rate_headers = [("x-ratelimit-remaining-images", "9")]
    drive(refuse(scene.client, record, error))
    assert error.headers == (("x-ratelimit-remaining-images", "9"),)


def test_what_a_reservation_tells_and_that_clients_notice_nothing_of_a_shadow() -> None:
    scene = SETTINGS["text"].scene()
    reservation = FakeReservation(scene.books.hand_out("reservation"))
    reservation.standing, reservation.finding = STANDING, RateExceeded()
    record = new_record(scene.client, "anthropic_messages", FakeClock())
    note_reservation(record, reservation)
    assert record.rate_headers[0] == ("anthropic-ratelimit-images-limit", "10")
    assert record.findings == ["rate_limit_exceeded"]
    shadow = new_record(scene.client, "anthropic_messages", FakeClock())
    shadow.shadow = True
    note_reservation(shadow, reservation)
    assert (shadow.rate_headers, shadow.findings) == ([], ["rate_limit_exceeded"])


def test_after_the_first_byte_the_status_is_the_one_that_was_sent() -> None:
    scene, _ = concluded(BackendLost(), started=True)
    assert (scene.record.status, scene.record.code) == (None, "backend_lost")


def test_the_unforeseen_is_a_bug_whose_detail_stays_here() -> None:
    scene, came = concluded(KeyError("secret"))
    (error,) = scene.client.refusals
    assert isinstance(error, GatewayBug)
    assert "secret" not in error.message
    assert str(scene.record.detail).startswith("KeyError in exchange.py:")
    assert "secret" not in str(scene.record.detail)
    assert came.escaped is None


def test_a_client_that_left_gets_no_answer() -> None:
    scene, came = concluded(ConnectionResetError(), left=True)
    assert (scene.record.outcome, scene.client.refusals, came.escaped) == ("client_gone", [], None)
    scene, _ = concluded(ConnectionResetError())
    assert (scene.record.outcome, len(scene.client.refusals)) == ("bug", 1)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()])
def test_what_is_no_error_of_the_exchange_goes_on_up(error: BaseException) -> None:
    scene, came = concluded(error, left=True)
    assert came.escaped is error
    assert (scene.record.outcome, scene.client.refusals) == ("client_gone", [])


def test_whom_a_drain_cuts_hears_of_it() -> None:
    error = asyncio.CancelledError()
    scene, came = concluded(error)
    assert came.escaped is error
    assert [refusal.code for refusal in scene.client.refusals] == ["draining"]
    assert (scene.record.outcome, scene.record.code) == ("shed", "draining")


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.code)
def test_every_error_has_an_outcome_of_the_closed_set(error: type[GatewayError]) -> None:
    assert outcome_of(error()) in OUTCOMES - {"ok", "client_gone", "backend_refused"}


def test_who_ended_it() -> None:
    assert outcome_of(TooManyImages()) == "rejected"
    assert outcome_of(KvBudgetExhausted()) == outcome_of(Draining()) == "shed"
    assert outcome_of(BackendLost()) == "backend_failed"
    assert outcome_of(ImageWorkerLost()) == "bug"


def test_each_lap_has_the_time_since_the_last() -> None:
    scene = SETTINGS["text"].scene()
    clock = FakeClock()
    record = new_record(scene.client, "d", clock)
    watch = Watch(clock, record)
    watch.lap("accept")
    watch.lap("read")
    watch.lap("check")
    assert [stage for stage, _ in record.stages] == ["accept", "read", "check"]
    assert [seconds for _, seconds in record.stages] == pytest.approx([0.001] * 3)


def test_a_size_that_the_detail_decided_is_told() -> None:
    scene = SETTINGS["text"].scene()
    record = new_record(scene.client, "d", FakeClock())
    rules = replace(RULES, adapted_pixels=512 * 512)
    note_plans(record, [facts(Size(4032, 3024))], [plan(Size(4032, 3024), rules)])
    assert record.changes == {Change.RESIZED: 1, Change.ADAPTED: 1}
    (told,) = record.geometry
    assert told.startswith("4032x3024 576x416 scale=")
    assert told.endswith(" offset=0x0 reason=adaptive")


def test_what_the_record_takes_from_images() -> None:
    scene = SETTINGS["text"].scene()
    record = new_record(scene.client, "d", FakeClock())
    found = [facts(Size(64, 64)), facts(Size(4032, 3024), number=1), facts(Size(64, 64), number=2)]
    plans = [plan(Size(64, 64)), plan(Size(4032, 3024), RULES), plan(Size(64, 64), canonical=False)]
    note_facts(record, found)
    note_plans(record, found, plans)
    assert (record.images_passed, record.images_shrunk, record.images_recoded) == (1, 1, 1)
    assert (record.image_bytes_in, record.image_bytes_out) == (3003, 1000)
    assert record.changes == {Change.RESIZED: 1, Change.DATA_URL: 1}
    assert record.geometry == ["64x64", "4032x3024 1312x960 scale=0.325397x0.31746 offset=0x0", "64x64"]
    assert record.image_digests == ["00" * 16, "01" * 16, "02" * 16]
    made = PreparedResult(Prepared(b"data:", Size(1, 1), ImageFormat.PNG, 50), from_cache=True)
    note_prepared(record, [made, replace(made, from_cache=False)])
    assert (record.cache_queries, record.cache_hits, record.image_bytes_out) == (2, 1, 1100)


def test_the_last_decision_counts() -> None:
    scene = SETTINGS["text"].scene()
    record = new_record(scene.client, "d", FakeClock())
    for name in ("a", "b"):
        decision = Decision(BackendName(name), "u", f"because {name}", Holding(3))
        note_decision(record, decision, view(name, engine=EngineKind.SGLANG))
    assert (record.backend, record.engine, record.decision_reason, record.images_known) == (
        "b", "sglang", "because b", 3,
    )  # fmt: skip


def test_what_a_refusing_backend_answered() -> None:
    assert refused_answer(NotTaken("connect")) is None
    answer = object()
    assert refused_answer(NotTaken("refused", response=answer)) is answer
