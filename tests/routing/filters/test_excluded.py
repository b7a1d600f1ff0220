from __future__ import annotations

from gateway.errors import NoBackend
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.excluded import EXCLUDED
from gateway.types import BackendName
from tests.routing.fields import view


def test_tried_backends_are_not_tried_again() -> None:
    ask = RouteAsk(excluded=frozenset({BackendName("a")}))
    assert not EXCLUDED.keeps(view("a"), ask)
    assert EXCLUDED.keeps(view("b"), ask)


def test_the_refusal_says_when_to_come_back() -> None:
    error = EXCLUDED.refuse(RouteAsk(), Profile(retry_after_s=3.0), ())
    assert isinstance(error, NoBackend)
    assert error.retry_after_s == 3.0
