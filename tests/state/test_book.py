from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import Rate, charged
from gateway.quota.store import Denied, Granted
from gateway.state.book import Book, Untold
from gateway.types import TenantId

A, B = TenantId("a"), TenantId("b")
RATE = Rate(60, 60, burst=10)  # a second for each


def claim(kv_tokens: int = 0, images: int = 0, tenant: TenantId = A, limit: int | None = 100) -> Claim:
    charges = (Charge(Unit.IMAGES, images, RATE),) if images else ()
    return Claim(tenant=tenant, holds=(Hold(Unit.KV_TOKENS, kv_tokens, limit),), charges=charges)


class Replica:
    """A book that numbers its takes."""

    def __init__(self, replicas: int = 4) -> None:
        self.book = Book()
        self.replicas = replicas
        self.issued = 0

    def take(self, of: Claim, now_us: int = 0, *, is_unsure: bool = False) -> ReservationId | Denied:
        self.issued += 1
        number = ReservationId(self.issued)
        outcome = self.book.take(of, number, now_us, self.replicas, is_unsure=is_unsure)
        return number if isinstance(outcome, Granted) else outcome


def test_holds_pass_within_the_share() -> None:
    replica = Replica()
    first, second = replica.take(claim(20)), replica.take(claim(5))
    denied = replica.take(claim(1))
    assert not isinstance(first, Denied)
    assert not isinstance(second, Denied)
    assert isinstance(denied, Denied)
    assert (denied.in_use, denied.wait_us) == (25, 0)
    assert replica.book.end(first, None, 0)
    assert not isinstance(replica.take(claim(20)), Denied)


def test_the_only_one_of_its_tenant_passes_up_to_the_whole_limit() -> None:
    replica = Replica()
    large = replica.take(claim(100))
    assert not isinstance(large, Denied)
    assert isinstance(replica.take(claim(1)), Denied)
    assert not isinstance(replica.take(claim(100, tenant=B)), Denied)


def test_what_was_open_before_counts() -> None:
    replica = Replica()
    replica.book.opened(ReservationId(100), claim(30), ())
    denied = replica.take(claim(1))
    assert isinstance(denied, Denied)
    assert denied.in_use == 30
    assert replica.book.open == [ReservationId(100)]


def test_without_a_limit_nothing_is_refused() -> None:
    replica = Replica()
    for _ in range(10):
        assert not isinstance(replica.take(claim(1_000, limit=None)), Denied)


def test_rates_drain_at_their_share() -> None:
    replica = Replica()
    passed = [not isinstance(replica.take(claim(images=1)), Denied) for _ in range(4)]
    assert passed == [True, True, False, False]  # ten at once for four replicas
    denied = replica.take(claim(images=1))
    assert isinstance(denied, Denied)
    assert isinstance(denied.limit, Charge)
    assert denied.wait_us == 2_000_000  # 2 x 4 s stand in a bucket of 10 s
    assert not isinstance(replica.take(claim(images=1), now_us=2_000_000), Denied)


def test_a_charge_larger_than_the_share_passes_when_the_bucket_is_empty() -> None:
    replica = Replica()
    assert not isinstance(replica.take(claim(images=10)), Denied)
    denied = replica.take(claim(images=10), now_us=39_000_000)
    assert isinstance(denied, Denied)
    assert denied.wait_us == 1_000_000
    assert not isinstance(replica.take(claim(images=10), now_us=40_000_000), Denied)


def test_a_store_that_comes_and_goes_gives_no_fresh_burst() -> None:
    replica = Replica()
    assert not isinstance(replica.take(claim(images=2)), Denied)
    replica.book.to_tell(A)
    replica.book.heard(A, 1)
    assert isinstance(replica.take(claim(images=2)), Denied)


EVENTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), max_size=8)


def after(tat_us: int, steps: Sequence[tuple[int, int]], start_us: int) -> int:
    """The bucket by the algorithm itself, charge by charge."""
    now_us = start_us
    for wait_us, cost_us in steps:
        now_us += wait_us
        tat_us = charged(tat_us, now_us, cost_us)
    return tat_us


def as_told(tat_us: int, untold: Untold) -> int:
    """As the script does it."""
    return tat_us if untold.floor_us is None else max(tat_us + untold.added_us, untold.floor_us)


@given(EVENTS, EVENTS, st.integers(0, 500), st.integers(0, 100))
def test_any_charges_are_told_exactly_by_two_numbers(
    first: list[tuple[int, int]], second: list[tuple[int, int]], tat_us: int, start_us: int
) -> None:
    untold, later = Untold(), Untold()
    now_us = start_us
    for at, steps in ((untold, first), (later, second)):
        for wait_us, cost_us in steps:
            now_us += wait_us
            at.charge(cost_us, now_us)
    assert as_told(as_told(tat_us, untold), later) == after(tat_us, [*first, *second], start_us)


def test_a_settlement_while_away_is_told_as_what_was_used() -> None:
    replica = Replica()
    number = replica.take(claim(images=2), now_us=5)
    assert not isinstance(number, Denied)
    assert replica.book.end(number, (500_000,), 1_000_005)
    assert not replica.book.end(number, (500_000,), 1_000_005)
    (told,) = replica.book.to_tell(A)
    # 2 s were charged, one has drained: no more than the other comes back.
    assert told.untold == {"images/60": Untold(1_000_000, 1_000_005)}


def test_what_the_store_granted_is_corrected_in_its_own_time() -> None:
    book = Book()
    book.offset_us = 1_000_000_000
    book.opened(ReservationId(1), claim(5, images=3), (1_003_000_000,))
    book.opened(ReservationId(2), claim(5, images=3), (1_006_000_000,))
    assert book.end(ReservationId(1), (0,), 1_000_000)  # 2 of its 3 s have not drained
    assert book.end(ReservationId(2), (4_000_000,), 2_000_000)
    (told,) = book.to_tell(A)
    assert told.untold == {"images/60": Untold(-1_000_000, 3_000_000)}
    assert book.open == []


def test_what_was_not_confirmed_is_told_again_before_what_came_since() -> None:
    replica = Replica()
    replica.take(claim(images=1))
    first = replica.book.to_tell(A)
    replica.take(claim(images=1), is_unsure=True)
    second = replica.book.to_tell(A)
    assert [told.number for told in second] == [1, 2]
    assert second[:1] == first
    assert second[1].unsure[0].charges == (("images/60", 1_000_000, 0),)
    replica.book.heard(A, 1)
    assert [told.number for told in replica.book.to_tell(A)] == [2]
    replica.book.heard(A, 2)
    (empty,) = replica.book.to_tell(A)
    assert (empty.untold, empty.unsure) == ({}, [])


def test_tenants_of_whom_the_store_may_not_know_all() -> None:
    replica = Replica()
    assert replica.book.tenants_to_tell(0) == []
    number = replica.take(claim(5))
    assert not isinstance(number, Denied)
    assert replica.book.tenants_to_tell(0) == [A]
    assert replica.book.tenants_of([number, ReservationId(99)]) == [A]
    replica.book.end(number, None, 0)
    assert replica.book.tenants_to_tell(0) == []
    replica.book.saw(claim(images=1), Granted((70,), 0))
    assert replica.book.tenants_to_tell(60) == [A]  # a bucket that may have been lost
    assert replica.book.tenants_to_tell(70) == []
