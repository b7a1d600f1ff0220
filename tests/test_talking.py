"""A conversation's way: a lane's backends alone, elsewhere only before anything was taken, everything given back."""

from __future__ import annotations

from gateway.ferry import ask_on
from gateway.types import BackendName
from gateway.types.paths import ANYWHERE, Lane
from tests.journey.fakes import view


def test_a_lane_leaves_its_backends_alone() -> None:
    views = [view("a"), view("b"), view("c")]
    lane = Lane(model="m", backends=frozenset({BackendName("b")}))
    ask = ask_on(lane, views, "r")
    assert ask.model == "m"
    assert ask.excluded == {BackendName("a"), BackendName("c")}
    assert ask_on(ANYWHERE, views, "r").excluded == frozenset()
