"""The decision's settings are the decision's own defaults."""

from __future__ import annotations

from gateway.assembly.wiring import routing_profile
from gateway.config.routing import RoutingConfig
from gateway.config.settings import Settings
from gateway.routing.ask import Profile


def test_without_a_word_the_defaults_hold() -> None:
    assert routing_profile(Settings()) == Profile()


def test_every_key_reaches_the_decision() -> None:
    profile = routing_profile(Settings(routing=RoutingConfig(0.5, 3.0, 2.0, 0.1, 1.5, 6.0)))
    weights = profile.weights
    assert (weights.queue, weights.work, weights.running, weights.home) == (0.5, 3.0, 2.0, 0.1)
    assert (profile.load_factor, profile.spare_requests) == (1.5, 6.0)


def test_a_holder_is_never_bounded_more_tightly_than_others() -> None:
    assert routing_profile(Settings(routing=RoutingConfig(spare_requests=0.0))).spare_requests == 1.0
