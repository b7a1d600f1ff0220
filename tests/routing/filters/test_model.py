from __future__ import annotations

import pytest

from gateway.errors import ModelNotFound
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.model import MODEL
from tests.routing.fields import view


@pytest.mark.parametrize(
    ("model", "models", "kept"),
    [(None, ("m",), True), ("m", ("n", "m"), True), ("m", (), True), ("m", ("n",), False), ("m", ("mm",), False)],
)
def test_models(model: str | None, models: tuple[str, ...], kept: bool) -> None:
    assert MODEL.keeps(view("a", models=models), RouteAsk(model=model)) is kept


def test_the_refusal_names_the_field_and_nothing_private() -> None:
    error = MODEL.refuse(RouteAsk(model="m"), Profile(), ())
    assert isinstance(error, ModelNotFound)
    assert error.part == "model"
    assert error.message == ModelNotFound.summary
