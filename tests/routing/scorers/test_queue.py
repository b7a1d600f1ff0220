from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.scorers.queue import QUEUE
from tests.routing.fields import field_of, view


def test_what_is_queued_by_each_ones_own_pace() -> None:
    fleet = [
        view("a", queued_prefill_tokens=1000, prefill_s_per_token=1e-3),
        view("b", queued_prefill_tokens=1000, prefill_s_per_token=2e-3),
        view("c", queued_encode_patches=100, encode_s_per_patch=1e-2),
        view("d"),
    ]
    assert list(QUEUE.cost_s(field_of(fleet, RouteAsk()))) == [1.0, 2.0, 1.0, 0.0]
