"""Which model a request is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ModelNotFound
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.stages.serving import served_model
from gateway.types import EngineKind
from tests.journey.fakes import MODEL, view
from tests.journey.scenes import Setting
from tests.journey.test_journey import traveled
from tests.policy.examples import policy

BOOK = ModelBook(shipped_catalog())
VIEWS = (view("a"), view("b"))


def test_the_model_is_the_one_asked_for_or_the_first_that_is_served() -> None:
    assert served_model(BOOK, policy(), VIEWS).name == MODEL
    assert served_model(BOOK, policy(model=MODEL), VIEWS).name == MODEL
    with pytest.raises(ModelNotFound):
        served_model(BOOK, policy(model="other"), VIEWS)
    assert not served_model(BOOK, policy(), ()).match.known


def test_without_a_name_the_first_model_is_one_that_has_the_path_and_is_up() -> None:
    views = (
        view("a", models=("embeds",)),
        view("b", models=("down",), engine=EngineKind.SGLANG, healthy=False),
        view("c", models=("up",), engine=EngineKind.SGLANG),
    )
    assert served_model(BOOK, policy(), views, "/v1/chat/completions").name == "embeds"
    assert served_model(BOOK, policy(), views, "/generate").name == "up"
    assert served_model(BOOK, policy(), views[:2], "/generate").name == "down"
    assert served_model(BOOK, policy(), views[:1], "/generate").name == ""


def test_without_a_name_the_model_counted_for_is_the_one_asked_of_backends() -> None:
    nameless = Setting(
        b'{"messages":[{"role":"user","content":"hi"}]}', views=(view("a"), view("b", models=("other",)))
    )
    asked = [traveled(nameless).record.backend for _ in range(4)]
    assert asked == ["a"] * 4
    first_is_other = replace(nameless, views=nameless.views[::-1])
    assert traveled(first_is_other).record.backend == "b"
