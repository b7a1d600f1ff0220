"""A response's id leads to the backend that keeps it, for as long as there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.kept_responses import Keeper, KeptResponses
from gateway.types import BackendName, TenantId

A, B, ACME = BackendName("a"), BackendName("b"), TenantId("acme")


def test_the_last_backend_seen_keeps_it() -> None:
    kept = KeptResponses()
    assert kept.keeper("resp_1") is None
    kept.learn("resp_1", A, ACME)
    kept.learn("resp_1", B, ACME)
    assert kept.keeper("resp_1") == Keeper(B, ACME)


def test_the_least_recently_used_is_forgotten_first() -> None:
    kept = KeptResponses(2)
    for name in ("resp_1", "resp_2"):
        kept.learn(name, A, ACME)
    kept.keeper("resp_1")
    kept.learn("resp_3", A, ACME)
    assert kept.keeper("resp_2") is None
    assert kept.keeper("resp_1") is not None


@given(st.lists(st.text(max_size=300)))
def test_it_never_holds_more_than_it_may(names: list[str]) -> None:
    kept = KeptResponses(5)
    for name in names:
        kept.learn(name, A, ACME)
    assert len(kept) <= 5
