from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.quota.claim import ReservationId
from gateway.quota.ledger import Ledger, Outcome
from gateway.types import TenantId

A, B = TenantId("a"), TenantId("b")
ONE, TWO = ReservationId(1), ReservationId(2)


def test_the_first_transition_wins() -> None:
    ledger = Ledger(lease_s=60)
    ledger.open(ONE, A, 100, now_s=0)
    closed = ledger.settle(ONE, 80, now_s=5)
    assert closed is not None
    assert (closed.outcome, closed.kv_tokens, closed.used_kv_tokens, closed.held_s) == (Outcome.SETTLED, 100, 80, 5)
    assert ledger.release(ONE, now_s=6) is None
    assert ledger.settle(ONE, 80, now_s=6) is None
    assert not ledger.renew(ONE, now_s=6)
    assert ledger.expire(now_s=1_000) == ()


def test_leases_end_in_order_and_renewal_moves_one_back() -> None:
    ledger = Ledger(lease_s=10)
    ledger.open(ONE, A, 1, now_s=0)
    ledger.open(TWO, B, 2, now_s=1)
    assert ledger.renew(ONE, now_s=5)
    assert [closed.reservation for closed in ledger.expire(now_s=11)] == [TWO]
    expired = ledger.expire(now_s=15)
    assert [(closed.reservation, closed.outcome, closed.held_s) for closed in expired] == [(ONE, Outcome.EXPIRED, 15)]
    assert ledger.release(ONE, now_s=16) is None


def test_a_clock_that_steps_back_ends_nothing_early_and_holds_no_negative_time() -> None:
    ledger = Ledger(lease_s=10)
    ledger.open(ONE, A, 1, now_s=100)
    ledger.open(TWO, A, 1, now_s=50)
    closed = ledger.release(TWO, now_s=40)
    assert closed is not None
    assert closed.held_s == 0
    assert ledger.expire(now_s=109) == ()


@pytest.mark.parametrize(("reservation", "tokens"), [(ONE, 5), (TWO, -1)])
def test_bugs_of_the_caller_are_told(reservation: ReservationId, tokens: int) -> None:
    ledger = Ledger(lease_s=10)
    ledger.open(ONE, A, 1, now_s=0)
    with pytest.raises(ValueError, match="cannot be opened"):
        ledger.open(reservation, A, tokens, now_s=0)


def test_a_lease_needs_a_length() -> None:
    with pytest.raises(ValueError, match="would end before it begins"):
        Ledger(lease_s=0)


class LedgerMachine(RuleBasedStateMachine):
    """Every history: sums are those of a plain model, each reservation ends exactly once, all closed is zero."""

    @initialize()
    def begin(self) -> None:
        self.ledger = Ledger(lease_s=10)
        self.now_s = 0.0
        self.model: dict[ReservationId, tuple[TenantId, int, float]] = {}
        self.ended: set[ReservationId] = set()
        self.issued = 0

    @rule(tenant=st.sampled_from([A, B]), tokens=st.integers(0, 1000))
    def open(self, tenant: TenantId, tokens: int) -> None:
        self.issued += 1
        reservation = ReservationId(self.issued)
        self.ledger.open(reservation, tenant, tokens, self.now_s)
        self.model[reservation] = (tenant, tokens, self.now_s + 10)

    @rule(seconds=st.floats(0, 8))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @precondition(lambda self: self.issued)
    @rule(data=st.data(), settle=st.booleans())
    def end(self, data: st.DataObject, settle: bool) -> None:
        reservation = ReservationId(data.draw(st.integers(1, self.issued)))
        ledger = self.ledger
        closed = ledger.settle(reservation, 1, self.now_s) if settle else ledger.release(reservation, self.now_s)
        assert (closed is not None) is (reservation in self.model)
        if closed is not None:
            self._ended(reservation)

    @precondition(lambda self: self.issued)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        reservation = ReservationId(data.draw(st.integers(1, self.issued)))
        assert self.ledger.renew(reservation, self.now_s) is (reservation in self.model)
        if reservation in self.model:
            tenant, tokens, _ = self.model[reservation]
            self.model[reservation] = (tenant, tokens, self.now_s + 10)

    @rule()
    def expire(self) -> None:
        due = {reservation for reservation, (_, _, until_s) in self.model.items() if until_s <= self.now_s}
        assert {closed.reservation for closed in self.ledger.expire(self.now_s)} == due
        for reservation in due:
            self._ended(reservation)

    def _ended(self, reservation: ReservationId) -> None:
        assert reservation not in self.ended
        self.ended.add(reservation)
        del self.model[reservation]

    @invariant()
    def sums_agree(self) -> None:
        for tenant in (A, B):
            expected = sum(tokens for owner, tokens, _ in self.model.values() if owner == tenant)
            assert self.ledger.inflight_kv_tokens(tenant) == expected
        assert self.ledger.total_kv_tokens == sum(tokens for _, tokens, _ in self.model.values())
        assert self.ledger.open_count == len(self.model)

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        self.ledger.expire(self.now_s + 1_000)
        assert (self.ledger.total_kv_tokens, self.ledger.open_count) == (0, 0)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=60, stateful_step_count=30)
