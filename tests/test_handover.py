"""A prepared request is given back, not sent: what it holds, what it costs, and that nothing stays open."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import InvalidRequest
from gateway.handover import answer_prepared
from gateway.quota.claim import Charge, Unit
from gateway.quota.gcra import Rate, charged, cost_us
from gateway.quota.standing import Standing
from gateway.types import Size
from tests.journey.driver import Ride, drive
from tests.journey.fakes import Scene, facts
from tests.journey.scenes import CAPPED, DATA_URL, Setting, body
from tests.journey.test_strikes import check_the_end

CONTENT = body(DATA_URL, temperature=1.50, seed=12345678901234567890)
SETTING = Setting(CONTENT, facts=(facts(Size(2000, 1500)),), policies=CAPPED)


def ride(
    setting: Setting = SETTING, query: str = "", strike_at: int | None = None, blow: BaseException | None = None
) -> tuple[Scene, Ride]:
    scene = setting.scene()
    scene.client._head = replace(scene.client.head, query=query)
    return scene, drive(answer_prepared(scene.client, OpenAIChat(), scene.ports, setting.world()), strike_at, blow)


def answered(setting: Setting = SETTING, query: str = "") -> tuple[dict[str, Any], Scene]:
    scene, came = ride(setting, query)
    check_the_end(scene, came, None)
    found: dict[str, Any] = json.loads(scene.client.written)
    return found, scene


def test_the_body_is_as_it_would_have_gone_out() -> None:
    found, scene = answered()
    assert scene.upstream.sent == []
    url = found["body"]["messages"][0]["content"][1]["image_url"]["url"]
    assert url.startswith("data:image/")
    assert url != DATA_URL
    assert b'"temperature": 1.5, "seed": 12345678901234567890' in scene.client.written
    assert scene.client.content_length == len(scene.client.written)


def test_the_whole_decision_is_told() -> None:
    found, scene = answered()
    assert found["backend"]["name"] in ("a", "b")
    assert found["backend"]["reason"]
    assert (found["policy"]["task"], found["path"]) == ("chat", "/v1/chat/completions")
    (image,) = found["images"]
    assert image["original"] == [2000, 1500]
    assert image["tokens"] < image["tokens_original"]
    assert found["estimate"]["image_tokens"] == image["tokens"]
    assert (scene.record.dialect, scene.record.backend) == ("estimate", None)


def test_images_alone() -> None:
    found, _ = answered(query="only=images")
    assert "body" not in found
    assert found["images"][0]["data_url"].startswith("data:image/")
    assert found["images"][0]["bytes_prepared"] > 0
    untouched, _ = answered(Setting(CONTENT, facts=(facts(),)), query="only=images")
    assert untouched["images"][0]["data_url"] is None


def test_it_is_charged_as_it_is_estimated() -> None:
    _, scene = answered()
    assert len(scene.budgets.asked) == 1
    scene, came = ride(query="only=nothing")
    assert isinstance(scene.client.refusals[0], InvalidRequest)
    assert scene.client.refusals[0].message == "The query's `only` must be one of: body, images."
    check_the_end(scene, came, None)


def test_how_the_tenant_stands_is_told_as_with_any_answer_that_was_charged() -> None:
    scene = SETTING.scene()
    rate = Rate(60, 60)
    scene.budgets.standing = Standing([Charge(Unit.REQUESTS, 1, rate)], [charged(0, 10**15, cost_us(1, rate))], 10**15)
    drive(answer_prepared(scene.client, OpenAIChat(), scene.ports, SETTING.world()))
    told = {name: value for name, value in scene.client.headers if name.startswith("x-ratelimit")}
    assert told == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
    }
    unlimited, _ = ride()
    assert not any(name.startswith("x-ratelimit") for name, _ in unlimited.client.headers)


@pytest.mark.parametrize("blow", [asyncio.CancelledError, ConnectionResetError, ZeroDivisionError])
def test_struck_at_any_await_nothing_stays_open(blow: type[BaseException]) -> None:
    for number in range(len(ride()[1].trail)):
        error = blow()
        scene, struck = ride(strike_at=number, blow=error)
        check_the_end(scene, struck, error)
