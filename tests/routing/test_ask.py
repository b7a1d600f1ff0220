"""The defaults that decide: only their order of size matters, and it is this."""

from __future__ import annotations

from gateway.routing.ask import Decision, Profile, RouteAsk
from gateway.types import BackendName


def test_an_empty_ask_may_go_anywhere() -> None:
    ask = RouteAsk()
    assert (ask.model, ask.images, ask.excluded) == (None, (), frozenset())


def test_a_decision_tells_its_trail_when_it_is_asked() -> None:
    told: list[str] = []

    def tell() -> tuple[str, ...]:
        told.append("asked")
        return ("line",)

    decision = Decision(BackendName("a"), "http://a", "only_one", tell=tell)
    assert (told, decision.known_images) == ([], 0)
    assert (decision.trail, told) == (("line",), ["asked"])


def test_work_done_again_counts_more_than_waiting() -> None:
    profile = Profile()
    assert profile.weights.work > profile.weights.queue >= profile.weights.home > 0
    assert profile.load_factor > 1
