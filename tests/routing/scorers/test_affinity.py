from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.scorers.affinity import AFFINITY
from tests.routing.fields import asking, field_of, holding, view


def test_the_share_held() -> None:
    ask = asking(images=(b"1", b"2"))
    field = field_of([view("a"), view("b"), view("c")], ask, holding({"a": [b"1", b"2"], "b": [b"2"]}, ask))
    assert AFFINITY.score(field) == [1.0, 0.5, 0.0]


def test_text_has_no_affinity() -> None:
    assert AFFINITY.score(field_of([view("a"), view("b")], RouteAsk())) == [0.0, 0.0]
