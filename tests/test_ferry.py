"""The short way: bodies stream through unread, and the same promises hold at every await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.errors import BackendLost, BodyTooLarge, GatewayError, NotTaken, RateExceeded, all_errors
from gateway.ferry import NO_COST, ferry
from gateway.quota.claim import Unit
from gateway.quota.gcra import Rate
from tests.journey.driver import Ride, drive
from tests.journey.fakes import Answer, Scene
from tests.journey.scenes import BUSY, EVENTS, NOT_THERE, PLAIN, Setting
from tests.journey.test_strikes import check_the_end
from tests.policy.examples import policy_set

BODY = b"any bytes, not JSON: \xff\x00"
SETTINGS = {
    "plain": Setting(BODY),
    "streaming": Setting(BODY, (EVENTS,)),
    "not connected, sent elsewhere": Setting(BODY, (NOT_THERE, PLAIN)),
    "not connected to either": Setting(BODY, (NOT_THERE, NOT_THERE)),
    "refused": Setting(BODY, (BUSY,)),
    "backend refuses": Setting(BODY, (Answer(404, pieces=(b"no",)),)),
    "limited": Setting(
        BODY, policies=policy_set(default="requests_in_flight: 2\nrates: {requests: 5/min, images: 3/s}")
    ),
}
BLOWS: dict[str, Callable[[], BaseException]] = {
    "cancelled": asyncio.CancelledError,
    "timeout": TimeoutError,
    "connection": ConnectionResetError,
    "unforeseen": ZeroDivisionError,
    "backend_lost": BackendLost,
    "body_too_large": BodyTooLarge,
}


def ride(setting: Setting, strike_at: int | None = None, blow: BaseException | None = None) -> tuple[Scene, Ride]:
    scene = setting.scene(path="/v1/embeddings")
    return scene, drive(ferry(scene.client, "pass_through", scene.ports, setting.world()), strike_at, blow)


@pytest.mark.parametrize("blow", BLOWS)
@pytest.mark.parametrize("name", SETTINGS)
def test_struck_at_any_await_nothing_stays_open(name: str, blow: str) -> None:
    scene, came = ride(SETTINGS[name])
    check_the_end(scene, came, None)
    for number in range(len(came.trail)):
        error = BLOWS[blow]()
        scene, struck = ride(SETTINGS[name], number, error)
        check_the_end(scene, struck, error)


@pytest.mark.parametrize(
    "error", [error for error in all_errors() if error is not GatewayError], ids=lambda error: error.code
)
def test_every_error_reaches_the_client(error: type[GatewayError]) -> None:
    for number in range(len(ride(SETTINGS["plain"])[1].trail)):
        blow = error()
        scene, came = ride(SETTINGS["plain"], number, blow)
        check_the_end(scene, came, blow)
        assert scene.client.refusals == [blow]


@pytest.mark.parametrize("reason", ["connect", "refused", "draining", "body_not_sent"])
def test_not_taken_at_stream(reason: str) -> None:
    for name, setting in SETTINGS.items():
        trail = ride(setting)[1].trail
        for number in [number for number, label in enumerate(trail) if label == "upstream.stream"]:
            scene, came = ride(setting, number, NotTaken(reason))
            check_the_end(scene, came, None)
            assert reason in scene.record.retry_reasons, name


def test_the_body_and_the_answer_pass_unread() -> None:
    scene, _ = ride(SETTINGS["plain"])
    assert scene.upstream.sent[0][2] == BODY
    assert scene.client.written == b"".join(PLAIN.pieces)
    assert scene.record.outcome == "ok"
    assert [stage for stage, _ in scene.record.stages] == ["accept", "decide", "forward", "relay"]
    assert scene.record.response_bytes == len(scene.client.written)
    assert scene.budgets.asked == []


def test_it_costs_a_backend_nothing_that_we_could_count() -> None:
    scene, _ = ride(SETTINGS["plain"])
    assert [cost for _, cost, _ in scene.upstream.accounts] == [NO_COST]


def test_only_a_failed_connection_is_tried_elsewhere() -> None:
    scene, _ = ride(SETTINGS["not connected, sent elsewhere"])
    assert (scene.record.attempts, scene.record.outcome) == (2, "ok")
    scene, _ = ride(SETTINGS["refused"])
    assert (scene.record.attempts, scene.client.status, scene.record.outcome) == (1, 503, "backend_refused")
    scene, _ = ride(SETTINGS["not connected to either"])
    assert [error.code for error in scene.client.refusals] == ["backend_unreachable"]


def test_a_spent_retry_budget_ends_it() -> None:
    scene, _ = ride(replace(SETTINGS["not connected, sent elsewhere"], retries=0))
    assert [error.code for error in scene.client.refusals] == ["backend_unreachable"]


def test_a_body_declared_too_large_is_refused_before_a_backend_is_chosen() -> None:
    setting = Setting(BODY, max_body_bytes=1024)
    scene = setting.scene(length=1025)
    drive(ferry(scene.client, "pass_through", scene.ports, setting.world()))
    assert [error.code for error in scene.client.refusals] == ["body_too_large"]
    assert scene.upstream.accounts == []


def test_no_backend_at_all() -> None:
    scene, came = ride(Setting(BODY, views=()))
    assert [error.code for error in scene.client.refusals] == ["no_backend"]
    assert came.trail == ("client.refuse",)


def test_of_all_limits_those_on_requests_hold() -> None:
    scene, _ = ride(SETTINGS["limited"])
    (claim,) = scene.budgets.asked
    assert [(hold.unit, hold.amount, hold.limit) for hold in claim.holds] == [(Unit.REQUESTS, 1, 2)]
    assert [(charge.unit, charge.amount, charge.rate) for charge in claim.charges] == [(Unit.REQUESTS, 1, Rate(5, 60))]
    assert ride(SETTINGS["plain"])[0].budgets.asked == []


def test_what_a_limit_on_requests_refuses_is_not_sent() -> None:
    refused = RateExceeded(rule="rates.requests", retry_after_s=2.0)
    trail = ride(SETTINGS["limited"])[1].trail
    scene, _ = ride(SETTINGS["limited"], trail.index("budgets.reserve"), refused)
    assert (scene.client.refusals, scene.record.rule, scene.record.backend) == ([refused], "rates.requests", None)
