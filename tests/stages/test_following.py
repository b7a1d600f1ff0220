"""Responses asked for by their ids: to whoever keeps them, for whoever they belong to."""

from __future__ import annotations

import json

import pytest

from gateway.dialects import dialect_of
from gateway.errors import NoBackend, ResponseNotFound
from gateway.ferry import ferry
from gateway.journey import travel
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.routing.kept_responses import KeptResponses
from gateway.stages.following import id_in, keeper_of, learn_response
from gateway.types import BackendName, TenantId
from tests.journey.driver import drive
from tests.journey.fakes import MODEL, Answer, Scene
from tests.journey.scenes import Setting
from tests.journey.test_strikes import check_the_end

A, OTHER = BackendName("a"), TenantId("other")
PATH = "/v1/responses"
MADE = Answer(pieces=(b'{"id":"resp_1","output":[{"id":"msg_2"}],"usage":{"input_tokens":3,"output_tokens":1}}',))
GONE = Answer(404, pieces=(b'{"error":{}}',))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/responses/resp_1", "resp_1"),
        ("/v1/responses/resp_1/cancel", "resp_1"),
        ("/v1/responses", None),
        ("/v1/responses/", None),
        ("/v1/responses/../pause", None),
        ("/v1/responses/a/b", None),
    ],
)
def test_ids_in_paths(path: str, found: str | None) -> None:
    assert id_in(path) == found


def test_an_id_leads_only_its_own_tenant_anywhere() -> None:
    kept = KeptResponses()
    learn_response(kept, b'data: {"item":{"id":"msg_1"},"response":{"id" : "resp_1"}}', A, DEFAULT_TENANT)
    learn_response(kept, b'{"id":"msg_7"}', A, DEFAULT_TENANT)
    assert keeper_of(kept, "resp_1", DEFAULT_TENANT, "p") == A
    assert keeper_of(kept, "resp_2", DEFAULT_TENANT, "p") is None
    assert keeper_of(kept, None, DEFAULT_TENANT, "p") is None
    with pytest.raises(ResponseNotFound):
        keeper_of(kept, "resp_1", OTHER, "p")


def asked(scene: Scene, setting: Setting) -> Scene:
    dialect = dialect_of(PATH)
    assert dialect is not None
    check_the_end(scene, drive(travel(scene.client, dialect, scene.ports, setting.world())), None)
    return scene


def test_a_conversation_goes_on_where_it_began() -> None:
    content = json.dumps({"model": MODEL, "input": "hi", "previous_response_id": "resp_0"}).encode()
    for backend in ("a", "b"):
        setting = Setting(content, (MADE,))
        scene = setting.scene(path=PATH)
        scene.responses.learn("resp_0", BackendName(backend), DEFAULT_TENANT)
        asked(scene, setting)
        assert scene.record.backend == backend
        keeper = scene.responses.keeper("resp_1")
        assert keeper is not None
        assert keeper.backend == backend


def test_another_tenants_response_is_not_there() -> None:
    content = json.dumps({"model": MODEL, "input": "hi", "previous_response_id": "resp_0"}).encode()
    setting = Setting(content, (MADE,))
    scene = setting.scene(path=PATH)
    scene.responses.learn("resp_0", A, OTHER)
    asked(scene, setting)
    assert isinstance(scene.client.refusals[0], ResponseNotFound)
    assert scene.upstream.sent == []


def fetched(*answers: Answer, keeper: str | None = None) -> Scene:
    setting = Setting(b"", answers)
    scene = setting.scene(path=f"{PATH}/resp_0")
    if keeper is not None:
        scene.responses.learn("resp_0", BackendName(keeper), DEFAULT_TENANT)
    check_the_end(scene, drive(ferry(scene.client, "pass_through", scene.ports, setting.world())), None)
    return scene


def test_a_response_is_fetched_from_its_keeper() -> None:
    for backend in ("a", "b"):
        assert fetched(MADE, keeper=backend).record.backend == backend
    assert fetched(GONE, keeper="a").client.status == 404


def test_where_nobody_knows_all_are_asked() -> None:
    scene = fetched(GONE, MADE)
    assert scene.client.status == 200
    assert len(scene.upstream.sent) == 2
    scene = fetched(GONE, GONE)
    assert isinstance(scene.client.refusals[0], ResponseNotFound)


def gone_on(*answers: Answer, keeper: str | None = None) -> Scene:
    content = json.dumps({"model": MODEL, "input": "hi", "previous_response_id": "resp_0"}).encode()
    setting = Setting(content, answers)
    scene = setting.scene(path=PATH)
    if keeper is not None:
        scene.responses.learn("resp_0", BackendName(keeper), DEFAULT_TENANT)
    return asked(scene, setting)


def test_a_conversation_that_another_replica_began_is_found() -> None:
    scene = gone_on(GONE, MADE)
    assert scene.client.status == 200
    first, second = [backend for backend, _, _ in scene.upstream.sent]
    assert first != second
    keeper = scene.responses.keeper("resp_1")
    assert keeper is not None
    assert keeper.backend == scene.record.backend == second


def test_a_conversation_that_nobody_keeps_is_the_engines_own_404() -> None:
    scene = gone_on(GONE, GONE)
    assert (scene.client.status, scene.client.refusals) == (404, [])
    assert len(scene.upstream.sent) == 2
    assert len(gone_on(GONE, MADE, keeper="a").upstream.sent) == 1, "who keeps it says so itself"


def test_who_may_keep_it_but_refused_makes_it_not_gone() -> None:
    busy = Answer(503, refusal="refused")
    assert isinstance(gone_on(busy, GONE).client.refusals[0], NoBackend)
    assert gone_on(busy, MADE).client.status == 200
