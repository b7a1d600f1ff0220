from __future__ import annotations

import pytest

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.context import CONTEXT
from tests.routing.fields import view


@pytest.mark.parametrize(
    ("context", "capacity", "kept"),
    [(None, None, True), (100, None, True), (99, None, False), (None, 150, True), (None, 149, False)],
)
def test_room(context: int | None, capacity: int | None, kept: bool) -> None:
    ask = RouteAsk(prompt_tokens=100, kv_tokens=150)
    assert CONTEXT.keeps(view("a", context_tokens=context, kv_capacity_tokens=capacity), ask) is kept


def test_it_is_soft() -> None:
    assert CONTEXT.refuse(RouteAsk(), Profile(), ()) is None
