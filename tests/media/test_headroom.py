from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.media.headroom import Fit, Headroom


def test_one_job_alone_always_runs() -> None:
    headroom = Headroom(10)
    assert headroom.fit("a", 1_000, 1) is Fit.FITS
    headroom.take("a", 1_000)
    assert headroom.fit("b", 1, 1) is Fit.ALL_FULL
    headroom.give("a", 1_000)
    assert headroom.reserved_bytes == 0


def test_a_tenant_alone_may_use_all_of_it() -> None:
    headroom = Headroom(100)
    headroom.take("a", 60)
    assert headroom.fit("a", 40, 1) is Fit.FITS
    assert headroom.fit("a", 41, 1) is Fit.ALL_FULL


def test_while_others_wait_or_run_a_tenant_has_an_equal_share() -> None:
    headroom = Headroom(100)
    headroom.take("a", 30)
    assert headroom.fit("a", 20, 2) is Fit.FITS
    assert headroom.fit("a", 21, 2) is Fit.TENANT_FULL
    assert headroom.fit("a", 4, 3) is Fit.TENANT_FULL
    assert headroom.fit("b", 70, 2) is Fit.FITS
    headroom.take("b", 10)
    assert headroom.fit("a", 21, 1) is Fit.TENANT_FULL


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 90), st.integers(1, 4))))
def test_what_runs_together_never_exceeds_the_budget(jobs: list[tuple[str, int, int]]) -> None:
    headroom = Headroom(100)
    running: list[tuple[str, int]] = []
    for tenant, byte_count, waiting in jobs:
        if headroom.fit(tenant, byte_count, waiting) is Fit.FITS:
            headroom.take(tenant, byte_count)
            running.append((tenant, byte_count))
        assert headroom.reserved_bytes == sum(size for _, size in running) <= 100
    for tenant, byte_count in running:
        headroom.give(tenant, byte_count)
    assert headroom.reserved_bytes == 0
