"""What the page shows of a picture is what a request of it would get, by the same functions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidRequest
from gateway.media.shm import HeapBody
from gateway.playground import MODELS_LIMIT, SIDE_LIMIT, Choice, chat_body, picture_body, price_sizes, show_picture
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.types import Size, SourceFacts, TenantId
from tests.journey.driver import drive
from tests.journey.fakes import MODEL, Scene, facts, view
from tests.journey.scenes import Setting
from tests.policy.examples import policy_set

POLICIES = policy_set(
    default="tasks:\n  chat: {}\n  small: {max_pixels: 262144}\n  shy: {max_pixels: 262144, mode: shadow}\n",
    acme="tenant: acme\n",
)
PHOTO = facts(Size(4032, 3024))
OTHER = "OpenGVLab/InternVL3-8B"


def chosen(*models: str, **fields: Any) -> Choice:
    return Choice(models or (MODEL,), DEFAULT_TENANT, **fields)


def shown(choice: Choice, fact: SourceFacts = PHOTO, **changes: Any) -> tuple[dict[str, Any], Scene]:
    setting = replace(Setting(b"{}", facts=(fact,), policies=POLICIES), **changes)
    scene = setting.scene()
    body = HeapBody(picture_body(choice, b"abc", "image/jpeg"))
    found: dict[str, Any] = {}

    async def work() -> None:
        found.update(await show_picture(body, choice, scene.ports, setting.world()))

    _run(work())
    json.dumps(found)  # it goes out as JSON
    return found, scene


def priced(choice: Choice, *sizes: Size) -> list[list[dict[str, Any]]]:
    setting = Setting(b"{}", policies=POLICIES)
    scene = setting.scene()
    found: list[list[dict[str, Any]]] = []

    async def work() -> None:
        answer: Any = await price_sizes(sizes, choice, scene.ports, setting.world())
        found.extend(answer["sizes"])

    _run(work())
    assert scene.media.scopes == []
    return found


def _run(work: Coroutine[object, None, None]) -> None:
    came = drive(work)
    if isinstance(came.escaped, GatewayError):
        raise came.escaped
    assert came.escaped is None or isinstance(came.escaped, asyncio.CancelledError)


def test_a_picture_is_looked_at_and_made_but_nothing_is_reserved_or_sent() -> None:
    found, scene = shown(chosen(task="small"))
    (row,) = found["rows"]
    assert row["original"] == [4032, 3024]
    assert row["target"] == [576, 416]
    assert row["tokens"] == 234 == row["grid"][1] * row["grid"][2] // row["patches_a_token"] ** 2
    assert row["why"] == {
        "reason": "policy_cap", "key": "max_pixels", "value": 262144,
        "source": "policies/default.yaml:3 tasks.small.max_pixels",
    }  # fmt: skip
    assert found["delivered"] == {
        "data_url": "data:image/jpeg;base64,QUJD", "bytes": 3, "format": "jpeg", "size": [576, 416],
    }  # fmt: skip
    assert found["explained"]["images"][0]["tokens"] == row["tokens"]
    assert found["explained"]["policy"]["task"] == "small"
    assert (scene.budgets.asked, scene.upstream.sent) == ([], [])
    assert scene.books.still_open == []


def test_what_goes_as_it_came_is_not_made_anew() -> None:
    for choice in (chosen(), chosen(task="shy")):
        found, scene = shown(choice)
        assert found["delivered"] is None
        assert scene.media.jobs == []


def test_models_side_by_side_served_or_not_or_of_closed_apis() -> None:
    first, second, third = shown(chosen(MODEL, OTHER, "gpt-4o"))[0]["rows"]
    assert (first["served"], second["served"], third["closed"]) == (True, False, True)
    assert (second["tokens"], second["patches_a_tile"]) == (3328, 32)
    assert third["tokens"] == 765
    assert shown(chosen("gpt-4o", detail="low"))[0]["rows"][0]["tokens"] == 85


def test_a_size_costs_what_a_picture_of_that_size_costs() -> None:
    for choice in (chosen(MODEL, OTHER), chosen(task="small")):
        ((*rows,),) = priced(choice, Size(4032, 3024))
        for row, seen in zip(rows, shown(choice)[0]["rows"], strict=True):
            same = {"bytes", "format"}
            assert {k: v for k, v in row.items() if k not in same} == {k: v for k, v in seen.items() if k not in same}


def test_what_cannot_be_priced_says_why_beside_the_others() -> None:
    strip = priced(chosen(MODEL, OTHER), Size(60_000, 10))[0]
    assert strip[0]["error"] == "aspect_ratio_exceeded"
    assert strip[1]["tokens"] > 0
    assert shown(chosen(task="nothing"))[0]["rows"][0]["error"] == "not_permitted"
    nobody = replace(chosen(), tenant=TenantId("nobody"))
    found = shown(nobody)[0]
    assert found["rows"][0]["error"] == "not_permitted"
    assert found["explained"]["refused"]["code"] == "not_permitted"


@pytest.mark.parametrize(
    ("choice", "sizes"),
    [
        (Choice((), DEFAULT_TENANT), [Size(1, 1)]),
        (Choice((MODEL,) * (MODELS_LIMIT + 1), DEFAULT_TENANT), [Size(1, 1)]),
        (Choice(("",), DEFAULT_TENANT), [Size(1, 1)]),
        (chosen(detail="finest"), [Size(1, 1)]),
        (chosen(), []),
        (chosen(), [Size(0, 1)]),
        (chosen(), [Size(1, SIDE_LIMIT + 1)]),
        (chosen(), [Size(1, 1)] * 33),
    ],
)
def test_what_cannot_be_asked_is_refused(choice: Choice, sizes: list[Size]) -> None:
    with pytest.raises(InvalidRequest):
        priced(choice, *sizes)


def test_a_type_that_is_none_is_not_written_into_the_request() -> None:
    body = json.loads(picture_body(chosen(), b"\x00", 'x","role":"system'))
    assert body["messages"][0]["content"][1]["image_url"]["url"] == "data:application/octet-stream;base64,AA=="
    assert json.loads(chat_body(chosen("\ud800")))["model"] == "?"


def test_no_backend_at_all_is_told_and_refuses_nothing() -> None:
    found, _ = shown(chosen(), views=())
    assert found["explained"]["decision"]["backend"] is None
    assert found["rows"][0]["served"] is False


def test_the_caps_of_backends_count() -> None:
    found, _ = shown(chosen(), views=(view("a", max_pixels=1_310_720),))
    (row,) = found["rows"]
    assert row["why"]["key"] == "engine cap"
    assert row["why"]["value"] == 1_310_720
    assert row["tokens"] < row["patches"]
