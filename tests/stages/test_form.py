"""A form's model is read off its first bytes, and every byte still arrives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.ferry import ferry
from gateway.policy.visible import ModelAlias
from gateway.stages.form import PEEKED_BYTES, Form, is_form
from gateway.types import BackendName
from tests.journey.driver import drive
from tests.journey.fakes import Scene, head, view
from tests.journey.scenes import PLAIN, Setting
from tests.journey.test_strikes import check_the_end
from tests.policy.examples import policy_set

TYPE = ("content-type", "multipart/form-data; boundary=b")
FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\x00\xff\r\n'
END = b"--b--\r\n"


def named(model: str) -> bytes:
    field = b'--b\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain\r\n\r\n'
    return field + model.encode() + b"\r\n"


def carried(body: bytes, policies: str = "{}") -> Scene:
    views = (view("a", models=("ears",)), view("b", models=("eyes",)))
    found = replace(policy_set(default=policies), aliases={"listen": ModelAlias("ears")})
    setting = Setting(body, (PLAIN,), views=views, policies=found, headers=(TYPE,))
    scene = setting.scene(len(body), path="/v1/audio/transcriptions")
    came = drive(ferry(scene.client, "pass_through", scene.ports, setting.world()))
    check_the_end(scene, came, None)
    return scene


def test_only_forms_are_looked_into() -> None:
    assert is_form(head(TYPE))
    assert not is_form(head(("content-type", "application/json")))
    assert not is_form(head())


@pytest.mark.parametrize(("model", "backend"), [("ears", "a"), ("eyes", "b")])
def test_the_model_decides_the_backend(model: str, backend: str) -> None:
    body = named(model) + FILE + END
    scene = carried(body)
    assert scene.record.backend == BackendName(backend)
    assert scene.upstream.sent[0][2] == body


def test_an_alias_goes_on_as_the_model_behind_it() -> None:
    scene = carried(named("listen") + FILE + END)
    assert scene.upstream.sent[0][2] == named("ears") + FILE + END
    assert scene.record.backend == BackendName("a")


def test_a_model_that_is_not_there_is_refused() -> None:
    assert [error.code for error in carried(named("nobody") + FILE + END).client.refusals] == ["model_not_found"]
    refused = carried(named("ears") + FILE + END, "allowed_models: [eyes]").client.refusals
    assert [error.code for error in refused] == ["model_not_found"]


def test_a_model_behind_the_file_is_not_waited_for() -> None:
    body = FILE.replace(b"RIFF", b"R" * PEEKED_BYTES) + named("ears") + END
    scene = carried(body)
    assert scene.upstream.sent[0][2] == body


def test_the_length_follows_the_name() -> None:
    body = named("listen") + END
    client = Setting(body, headers=(TYPE,)).scene(len(body)).client
    made: list[Form] = []

    async def read() -> None:
        made.append(await Form.of(client))

    drive(read())
    (form,) = made
    assert form.model == "listen"
    form.rename("ears-large")
    assert form.head.content_length == len(body) + len("ears-large") - len("listen")


def test_a_model_named_again_behind_the_file_never_reaches_its_end() -> None:
    long = FILE + b"x" * PEEKED_BYTES + b"\r\n"
    scene = carried(named("ears") + long + named("eyes") + END)
    assert [error.code for error in scene.client.refusals] == ["invalid_request"]
    assert [error.code for error in carried(named("ears") + named("eyes") + END).client.refusals] == ["invalid_request"]
