"""The defaults that decide: only their order of size matters, and it is this."""

from __future__ import annotations

from gateway.routing.ask import Profile, RouteAsk


def test_an_empty_ask_may_go_anywhere() -> None:
    ask = RouteAsk()
    assert (ask.model, ask.images, ask.excluded) == (None, (), frozenset())


def test_a_megapixel_costs_less_to_encode_than_we_wait_to_leave_its_holder() -> None:
    profile = Profile()
    megapixel_s = 4096 * profile.encode_s_per_patch + 1024 * profile.prefill_s_per_token
    assert megapixel_s < profile.leave_s
    assert profile.load_factor > 1
