from __future__ import annotations

import pytest

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.available import AVAILABLE
from tests.routing.fields import view


@pytest.mark.parametrize(
    ("healthy", "draining", "kept"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_marks(healthy: bool, draining: bool, kept: bool) -> None:
    assert AVAILABLE.keeps(view("a", healthy=healthy, draining=draining), RouteAsk()) is kept


def test_who_asked_for_a_rest_has_it() -> None:
    assert not AVAILABLE.keeps(view("a", resting=True), RouteAsk())


def test_it_is_soft_so_that_a_wrong_mark_is_not_an_outage() -> None:
    assert AVAILABLE.refuse(RouteAsk(), Profile(), ()) is None
