from __future__ import annotations

from gateway.simulator.refusal import EngineLost, Refusal


def test_a_refusal_carries_what_an_envelope_needs() -> None:
    refusal = Refusal(404, "no such model", "NotFoundError", "model")
    assert (refusal.status, refusal.message, refusal.kind, refusal.param, str(refusal)) == (
        404,
        "no such model",
        "NotFoundError",
        "model",
        "no such model",
    )


def test_a_lost_engine_says_so_in_the_engines_words() -> None:
    assert str(EngineLost()).startswith("EngineCore encountered an issue.")
