from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.ask import Profile
from gateway.routing.field import field_of
from gateway.routing.holding import Holding
from gateway.routing.scorers.work import WORK
from gateway.types import BackendName
from tests.routing.fields import asking, view

PROFILE = Profile(prefill_s_per_token=1e-3, encode_s_per_patch=1e-4)
ASK = asking((b"1", b"2"), 4000, prompt_tokens=1000)


@pytest.mark.parametrize(
    ("held", "seconds"),
    [
        (Holding(), 1.4),
        (Holding(1, 2000), 1.2),
        (Holding(2, 4000, 750), 0.25),
        (Holding(2, 9000, 5000), 0.0),
    ],
)
def test_what_is_held_needs_no_time(held: Holding, seconds: float) -> None:
    field = field_of([view("a"), view("b")], ASK, {BackendName("a"): held}, PROFILE)
    assert list(WORK.cost_s(field)) == pytest.approx([seconds, 1.4])


@given(st.integers(0, 4000), st.integers(0, 1000), st.integers(0, 500))
def test_holding_more_never_takes_longer(patches: int, tokens: int, more: int) -> None:
    holdings = {
        BackendName("a"): Holding(1, patches, tokens),
        BackendName("b"): Holding(1, patches + more, tokens + more),
    }
    less_s, more_s = WORK.cost_s(field_of([view("a"), view("b")], ASK, holdings, PROFILE))
    assert more_s <= less_s
