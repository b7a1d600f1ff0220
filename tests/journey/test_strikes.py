"""Strike at every await of a journey, with every kind of blow: nothing stays open, everybody is answered once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import GatewayError, NotTaken, all_errors
from gateway.journey import travel
from gateway.quota.claim import Used
from tests.journey.driver import Ride, drive
from tests.journey.fakes import Scene
from tests.journey.scenes import SETTINGS, Setting

OUTCOMES = {"ok", "rejected", "shed", "backend_failed", "backend_refused", "bug", "client_gone"}
ALL_ERRORS = [error for error in all_errors() if error is not GatewayError]
# One of each branch; every class of the tree takes its turn in the test below.
REPRESENTATIVE = {"image_undecodable", "kv_budget_exhausted", "pool_saturated", "backend_lost", "image_worker_lost"}
BLOWS: dict[str, Callable[[], BaseException]] = {
    "cancelled": asyncio.CancelledError,
    "timeout": TimeoutError,
    "connection": ConnectionResetError,
    "unforeseen": lambda: RuntimeError("10.0.0.7 said sk-secret"),
    **{error.code: error for error in ALL_ERRORS if error.code in REPRESENTATIVE},
}


def ride(setting: Setting, strike_at: int | None = None, blow: BaseException | None = None) -> tuple[Scene, Ride]:
    scene = setting.scene()
    return scene, drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()), strike_at, blow)


def check_the_end(scene: Scene, came: Ride, blow: BaseException | None) -> None:
    """What holds whatever happened."""
    assert scene.books.still_open == []
    record, client = scene.record, scene.client
    assert record.outcome in OUTCOMES
    assert record.ended_s is not None
    assert record.ended_s >= record.started_s
    assert client.finished + len(client.refusals) <= 1 or came.trail[-1] == "client.refuse"
    if isinstance(blow, asyncio.CancelledError):  # cut by a drain: nobody left
        assert came.escaped is blow
        assert record.outcome == "shed"
        assert record.code == ("drain_ended" if record.attempts else "draining")
        assert [error.code for error in client.refusals][-1:] == [record.code]
        return
    if came.escaped is not None:
        # Not even the refusal could be written: for the HTTP server to log and to cut the connection.
        assert came.trail[-1] == "client.refuse"
        assert came.escaped is blow
        assert record.outcome == "bug"
        return
    if client.left:
        assert record.outcome == "client_gone"
    else:
        assert client.finished + len(client.refusals) == 1


@pytest.mark.parametrize("name", SETTINGS)
def test_left_alone_it_ends_well(name: str) -> None:
    scene, came = ride(SETTINGS[name])
    check_the_end(scene, came, None)
    assert scene.books.endings("body") == ["closed"]


@pytest.mark.parametrize("blow", BLOWS)
@pytest.mark.parametrize("name", SETTINGS)
def test_struck_at_any_await_nothing_stays_open(name: str, blow: str) -> None:
    awaits = len(ride(SETTINGS[name])[1].trail)
    assert awaits >= 4
    for number in range(awaits):
        error = BLOWS[blow]()
        scene, came = ride(SETTINGS[name], number, error)
        check_the_end(scene, came, error)


@pytest.mark.parametrize("name", ["text", "streaming"])
def test_who_left_is_told_nothing(name: str) -> None:
    for number, label in enumerate(ride(SETTINGS[name])[1].trail):
        blow = asyncio.CancelledError()
        scene = SETTINGS[name].scene()
        scene.client.left = True
        came = drive(travel(scene.client, OpenAIChat(), scene.ports, SETTINGS[name].world()), number, blow)
        assert came.escaped is blow, label
        assert scene.books.still_open == []
        assert scene.client.refusals == []
        assert scene.record.outcome == "client_gone"


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.code)
def test_every_error_of_the_tree_at_every_await(error: type[GatewayError]) -> None:
    """A client that was not answered yet gets this very error; the record names it."""
    setting = SETTINGS["two images"]
    for number, label in enumerate(ride(setting)[1].trail):
        blow = error(part="messages.0", detail="private")
        scene, came = ride(setting, number, blow)
        check_the_end(scene, came, blow)
        assert scene.client.refusals == [blow], label
        assert (scene.record.code, scene.record.detail) == (error.code, "private")
        if scene.client.status is None:
            assert scene.record.status == error.status


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("reason", ["connect", "refused", "draining", "body_not_sent"])
def test_not_taken_is_sent_elsewhere_within_the_budget(name: str, reason: str) -> None:
    trail = ride(SETTINGS[name])[1].trail
    for number in [number for number, label in enumerate(trail) if label == "upstream.forward"]:
        scene, came = ride(SETTINGS[name], number, NotTaken(reason))
        check_the_end(scene, came, None)
        assert reason in scene.record.retry_reasons
        homes = {view.name for view in SETTINGS[name].views}
        tried = [backend for backend, _, _ in scene.upstream.accounts if backend in homes]
        assert len(set(tried)) == len(tried), "no backend is tried twice"


@pytest.mark.parametrize("name", ["text", "streaming", "two images"])
def test_the_reservation_is_settled_by_usage_only_after_the_whole_answer(name: str) -> None:
    trail = ride(SETTINGS[name])[1].trail
    for number in range(trail.index("upstream.forward"), len(trail)):
        scene, _ = ride(SETTINGS[name], number, RuntimeError())
        assert scene.books.endings("reservation") == ["released"]
    scene, _ = ride(SETTINGS[name])
    assert scene.books.endings("reservation") == ["settled"]
    assert scene.budgets.reservations[0].settled == Used(30, 5)


def test_a_broken_connection_that_is_not_the_clients_is_our_fault_and_is_answered() -> None:
    trail = ride(SETTINGS["two images"])[1].trail
    for number in [number for number, label in enumerate(trail) if not label.startswith("client.")]:
        scene, _ = ride(SETTINGS["two images"], number, BrokenPipeError("worker 3"))
        assert [error.code for error in scene.client.refusals] == ["gateway_bug"]
        assert scene.record.outcome == "bug"


def test_what_nobody_foresaw_is_told_to_the_log_by_its_place_and_not_to_the_client() -> None:
    scene, _ = ride(SETTINGS["text"], 1, RuntimeError("10.0.0.7 said sk-secret"))
    (error,) = scene.client.refusals
    assert str(scene.record.detail).startswith("RuntimeError in journey.py:")  # a place; words could be anybody's
    body = OpenAIChat().error_body(error, scene.client.head.request_id)
    event = OpenAIChat().stream_error(error, scene.client.head.request_id)
    assert b"sk-secret" not in body + event
    assert b"10.0.0.7" not in body + event
