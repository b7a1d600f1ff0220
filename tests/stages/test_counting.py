"""A count is the engine's where it has one, and ours where it cannot."""

from __future__ import annotations

import json

import pytest

from gateway.dialects import dialect_of
from gateway.journey import travel
from gateway.stages.counting import HEADER
from tests.journey.driver import drive
from tests.journey.fakes import Answer, Scene
from tests.journey.scenes import NOT_THERE, Setting, body
from tests.journey.test_strikes import check_the_end

COUNTED = Answer(pieces=(b'{"input_tokens":7}',))
PATH = "/v1/messages/count_tokens"


def asked(*answers: Answer, path: str = PATH, views: int = 2) -> Scene:
    setting = Setting(body(), answers)
    if not views:
        setting = Setting(body(), answers, views=())
    scene = setting.scene(path=path)
    dialect = dialect_of(path)
    assert dialect is not None
    came = drive(travel(scene.client, dialect, scene.ports, setting.world()))
    check_the_end(scene, came, None)
    return scene


def test_the_engines_count_is_passed_on() -> None:
    scene = asked(COUNTED)
    assert json.loads(scene.client.written) == {"input_tokens": 7}
    assert HEADER not in dict(scene.client.headers)


@pytest.mark.parametrize("status", [404, 405, 501])
def test_where_the_engine_has_no_such_path_ours_is_the_answer(status: int) -> None:
    scene = asked(Answer(status, pieces=(b"no",)))
    assert json.loads(scene.client.written)["input_tokens"] > 0
    assert dict(scene.client.headers)[HEADER] == "gateway; estimate"
    assert scene.client.status == 200


def test_where_no_backend_answers_ours_is_the_answer() -> None:
    assert json.loads(asked(NOT_THERE, NOT_THERE).client.written)["input_tokens"] > 0
    assert json.loads(asked(views=0).client.written)["input_tokens"] > 0


def test_what_the_engine_refuses_stays_refused_and_messages_are_not_counts() -> None:
    assert asked(Answer(400, pieces=(b"bad",))).client.status == 400
    assert asked(Answer(404, pieces=(b"no",)), path="/v1/messages").client.status == 404
