"""Random histories for any store of budgets: take, settle, release, renew, expire, crash, time that jumps.

A subclass names the stores (`make_stores`) and how their answers are awaited (`answer`). All of them live the same
history and must say the same to the letter; the first is held against a model that knows only sums. Never is anything
above a limit; when everything has ended, everything is zero and, in time, every bucket full again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, Rate, remaining
from gateway.quota.store import Denied, Granted, Maybe, Store
from gateway.types import TenantId

T = TypeVar("T")
A, B = TenantId("a"), TenantId("b")
LEASE_S = 10.0
LEASE_US = int(LEASE_S * MICROSECONDS)
# Some day in 2026, as a shared store's clock counts.
START_US = 1_790_000_000 * MICROSECONDS
LIMITS: dict[TenantId, dict[Unit, int | None]] = {
    A: {Unit.KV_TOKENS: 100, Unit.KV_BYTES: None, Unit.REQUESTS: 5},
    B: {Unit.KV_TOKENS: 60},
}
RATES = {
    A: ((Unit.IMAGES, Rate(7, 60)), (Unit.TOKENS, Rate(1_000, 60, burst=300)), (Unit.TOKENS, Rate(5_000, 86_400))),
    B: ((Unit.REQUESTS, Rate(3, 1)), (Unit.KV_TOKEN_SECONDS, Rate(500, 60))),
}
AMOUNTS = st.integers(0, 400)


def claim_of(tenant: TenantId, kv_tokens: int, amounts: Sequence[int]) -> Claim:
    """A claim with every hold and rate of its tenant."""
    holds = tuple(Hold(unit, 1 if unit is Unit.REQUESTS else kv_tokens, most) for unit, most in LIMITS[tenant].items())
    charges = tuple(Charge(unit, amount, rate) for (unit, rate), amount in zip(RATES[tenant], amounts, strict=False))
    return Claim(tenant=tenant, holds=holds, charges=charges)


class StoreMachine(RuleBasedStateMachine):
    """See the module; ``stores[0]`` is the one that the model follows."""

    def make_stores(self) -> list[Store]:
        raise AssertionError("a subclass names its stores")

    def answer(self, maybe: Maybe[T]) -> T:
        """What a store says; a subclass with a remote store runs the awaitable."""
        assert not isinstance(maybe, Awaitable)
        return maybe

    @initialize()
    def begin(self) -> None:
        self.stores = self.make_stores()
        self.now_us = START_US
        self.issued = 0
        self.open: dict[ReservationId, tuple[Claim, int]] = {}  # with the end of its lease
        self.crashed: set[ReservationId] = set()

    def all_say(self, ask: Callable[[Store], T]) -> T:
        first, *others = [ask(store) for store in self.stores]
        for other in others:
            assert other == first
        return first

    @rule(tenant=st.sampled_from([A, B]), kv_tokens=st.integers(0, 60), amounts=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS))
    def take(self, tenant: TenantId, kv_tokens: int, amounts: tuple[int, int, int]) -> None:
        small = tuple(amount // 40 for amount in amounts) if amounts[0] % 2 else amounts
        claim = claim_of(tenant, kv_tokens, small)
        self._forget_expired()
        outcome = self.ask(claim)
        blocked = next((hold for hold in claim.holds if not self._fits(tenant, hold)), None)
        match outcome:
            case Denied(limit=Hold() as hold, in_use=in_use):
                assert hold == blocked
                assert in_use == self._sum(tenant, hold.unit)
            case Denied(limit=Charge(), wait_us=wait_us):
                assert blocked is None
                assert wait_us > 0
            case Granted(tats_us=tats_us):
                assert blocked is None
                assert len(tats_us) == len(claim.charges)
                for charge, tat_us in zip(claim.charges, tats_us, strict=True):
                    assert tat_us - self.now_us <= charge.rate.capacity_us
                self.open[ReservationId(self.issued)] = (claim, self.now_us + LEASE_US)

    def ask(self, claim: Claim) -> Granted | Denied:
        self.issued += 1
        reservation = ReservationId(self.issued)

        def take(store: Store) -> Granted | Denied:
            outcome = self.answer(store.take(claim, reservation, self.now_us))
            assert isinstance(outcome, Granted | Denied)
            return outcome

        return self.all_say(take)

    @precondition(lambda self: self.issued)
    @rule(data=st.data(), costs=st.lists(st.integers(0, 90_000_000), min_size=3, max_size=3))
    def settle(self, data: st.DataObject, costs: list[int]) -> None:
        reservation = self._some(data)
        open_one = self.open.pop(reservation, None)
        charges = 3 if open_one is None else len(open_one[0].charges)
        ended = self.all_say(lambda store: self.answer(store.settle(reservation, costs[:charges], self.now_us)))
        assert ended is (open_one is not None)

    @precondition(lambda self: self.issued)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.end(self._some(data))

    def end(self, reservation: ReservationId) -> None:
        ended = self.all_say(lambda store: self.answer(store.release(reservation, self.now_us)))
        assert ended is (self.open.pop(reservation, None) is not None)

    @precondition(lambda self: self.issued)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        """Everybody alive renews all it has, and asks for one that may have ended."""
        alive = [reservation for reservation in self.open if reservation not in self.crashed]
        asked = list(dict.fromkeys([*alive, self._some(data)]))
        gone = self.all_say(lambda store: self.answer(store.renew(asked, self.now_us)))
        assert list(gone) == [reservation for reservation in asked if reservation not in self.open]
        for reservation in asked:
            if reservation in self.open:
                self.open[reservation] = (self.open[reservation][0], self.now_us + LEASE_US)

    @rule()
    def expire(self) -> None:
        over = self.all_say(lambda store: sorted(self.answer(store.expire(self.now_us))))
        assert over == sorted(self._forget_expired())

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The owner is gone: nobody ends or renews this one, only its lease does."""
        self.crashed.add(data.draw(st.sampled_from(sorted(self.open))))

    @rule(jump_us=st.integers(0, 3_000_000) | st.sampled_from([LEASE_US, 60_000_000, 86_400_000_000]))
    def time_passes(self, jump_us: int) -> None:
        self.now_us += jump_us

    @invariant()
    def nothing_is_above_a_limit(self) -> None:
        if not hasattr(self, "open"):
            return
        for tenant, limits in LIMITS.items():
            for unit, limit in limits.items():
                assert limit is None or self._sum(tenant, unit) <= limit

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        for reservation in [each for each in self.open if each not in self.crashed]:
            self.end(reservation)
        self.now_us += 400 * 86_400 * MICROSECONDS
        self.all_say(lambda store: sorted(self.answer(store.expire(self.now_us))))
        for tenant in (A, B):
            # A full budget at once: nothing is held any more and no bucket remembers anything.
            claim = claim_of(tenant, 60, (7, 300, 5_000) if tenant == A else (3, 500))
            outcome = self.ask(claim)
            assert isinstance(outcome, Granted)
            left = [remaining(t, self.now_us, c.rate) for c, t in zip(claim.charges, outcome.tats_us, strict=True)]
            assert left == [0] * len(claim.charges)

    def _some(self, data: st.DataObject) -> ReservationId:
        alive = [number for number in range(1, self.issued + 1) if number not in self.crashed]
        return ReservationId(data.draw(st.sampled_from(alive or [self.issued + 1])))

    def _sum(self, tenant: TenantId, unit: Unit) -> int:
        return sum(claim.held(unit) for claim, _ in self.open.values() if claim.tenant == tenant)

    def _fits(self, tenant: TenantId, hold: Hold) -> bool:
        return hold.limit is None or self._sum(tenant, hold.unit) + hold.amount <= hold.limit

    def _forget_expired(self) -> list[ReservationId]:
        over = [reservation for reservation, (_, until_us) in self.open.items() if until_us <= self.now_us]
        for reservation in over:
            del self.open[reservation]
        return over
