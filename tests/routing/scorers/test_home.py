from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.hashing import ranked
from gateway.routing.holding import Holding
from gateway.routing.scorers.home import HOME
from tests.routing.fields import asking, field_of, view

FLEET = [view(name, engine_running=4, scraped_inflight_requests=1) for name in "abc"]
ASK = asking((b"0123456789abcdef",), 4000, prompt_tokens=1000)


def test_home_may_hold_what_we_never_sent_there() -> None:
    home = ranked(FLEET, ASK.images[0])[0]
    costs = HOME.cost_s(field_of(FLEET, ASK))
    assert [cost < 0 for cost in costs] == [one is home for one in FLEET]


def test_what_is_known_to_be_there_is_no_hope() -> None:
    home = ranked(FLEET, ASK.images[0])[0]
    assert list(HOME.cost_s(field_of(FLEET, ASK, {home.name: Holding(1, 4000)}))) == [0.0] * 3


def test_text_without_a_chain_has_no_home() -> None:
    assert list(HOME.cost_s(field_of(FLEET, RouteAsk(prompt_tokens=10)))) == [0.0] * 3


def test_where_nobody_else_sends_anything_there_is_no_hope() -> None:
    alone = [view(name, engine_running=4, scraped_inflight_requests=4) for name in "abc"]
    assert list(HOME.cost_s(field_of(alone, ASK))) == [0.0] * 3
