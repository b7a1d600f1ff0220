from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.claim import Claim, Priority
from gateway.quota.queue import AdmissionQueue, Ticket
from gateway.types import TenantId

FLOOD, QUIET, THIRD = TenantId("flood"), TenantId("quiet"), TenantId("third")


def claim(tenant: TenantId, cost: int, *, weight: float = 1.0, priority: Priority = Priority.NORMAL) -> Claim:
    return Claim(tenant=tenant, holds=(), cost=cost, weight=weight, priority=priority)


def serve_next(queue: AdmissionQueue, passes: Callable[[Ticket], bool] = lambda _: True) -> Ticket | None:
    """The first in order that its own limit does not hold back."""
    for ticket in queue.candidates():
        if passes(ticket):
            assert queue.serve(ticket)
            return ticket
    return None


def served(queue: AdmissionQueue, passes: Callable[[Ticket], bool] = lambda _: True) -> list[Ticket]:
    tickets = []
    while (ticket := serve_next(queue, passes)) is not None:
        tickets.append(ticket)
    return tickets


def test_within_a_tenant_the_first_comes_first() -> None:
    queue = AdmissionQueue()
    tickets = [queue.join(claim(QUIET, cost)) for cost in (900, 10, 50)]
    assert queue.waiting_count(QUIET) == 3
    assert served(queue) == tickets
    assert (len(queue), queue.is_empty, queue.candidates()) == (0, True, [])
    assert not queue.serve(tickets[0])


def test_shares_follow_cost_not_count() -> None:
    queue = AdmissionQueue()
    for _ in range(40):
        queue.join(claim(FLOOD, 100))
        queue.join(claim(QUIET, 10))
    first = served(queue)[:22]
    cost = {
        tenant: sum(ticket.claim.cost for ticket in first if ticket.claim.tenant == tenant) for tenant in (FLOOD, QUIET)
    }
    assert abs(cost[FLOOD] - cost[QUIET]) <= 100


def test_weights_divide_cost() -> None:
    queue = AdmissionQueue()
    for _ in range(30):
        queue.join(claim(FLOOD, 10, weight=2.0))
        queue.join(claim(QUIET, 10))
    first = served(queue)[:30]
    assert sum(ticket.claim.tenant == FLOOD for ticket in first) == pytest.approx(20, abs=1)


def test_the_urgent_go_first_also_within_a_tenant_and_those_of_one_priority_share() -> None:
    queue = AdmissionQueue()
    low = queue.join(claim(QUIET, 1, priority=Priority.LOW))
    normal = queue.join(claim(FLOOD, 1))
    high = [queue.join(claim(tenant, 1_000, priority=Priority.HIGH)) for tenant in (FLOOD, FLOOD, QUIET)]
    assert served(queue) == [high[0], high[2], high[1], normal, low]


def test_a_tenant_at_its_own_limit_is_passed_over() -> None:
    queue = AdmissionQueue()
    queue.join(claim(FLOOD, 1))
    quiet = queue.join(claim(QUIET, 500))
    assert served(queue, lambda ticket: ticket.claim.tenant != FLOOD) == [quiet]
    assert queue.waiting_count(FLOOD) == 1
    assert queue.is_backlogged(claim(FLOOD, 9))
    assert not queue.is_backlogged(claim(QUIET, 9))


def test_what_a_tenant_could_not_use_is_not_saved_up() -> None:
    queue = AdmissionQueue()
    held = [queue.join(claim(QUIET, 10)) for _ in range(20)]
    for _ in range(50):
        queue.join(claim(FLOOD, 10))
    for _ in range(30):
        assert serve_next(queue, lambda ticket: ticket.claim.tenant == FLOOD) is not None
    after = served(queue)[:10]
    assert sum(ticket in held for ticket in after) == pytest.approx(5, abs=1)


def test_whoever_leaves_takes_nothing_along() -> None:
    queue = AdmissionQueue()
    for ticket in [queue.join(claim(QUIET, 10_000)) for _ in range(5)]:
        assert queue.leave(ticket)
        assert not queue.leave(ticket)
    assert queue.is_empty
    queue.join(claim(FLOOD, 10))
    quiet = queue.join(claim(QUIET, 10))
    assert served(queue)[1] == quiet


def test_idle_lanes_are_forgotten_once_they_owe_nothing() -> None:
    queue = AdmissionQueue()
    for number in range(100):
        queue.leave(queue.join(claim(TenantId(f"tenant-{number}"), 5)))
    assert queue._lanes == {}
    assert queue.waiting_count(QUIET) == 0


def test_what_is_ahead_is_ones_own_and_the_others_fair_share() -> None:
    queue = AdmissionQueue()
    for _ in range(100):
        queue.join(claim(FLOOD, 1_000))
    queue.join(claim(THIRD, 7, priority=Priority.HIGH))
    queue.join(claim(QUIET, 50, priority=Priority.LOW))
    mine = claim(QUIET, 200)
    queue.join(mine)
    assert queue.cost_ahead(mine) == 7 + 200 + 200
    assert queue.cost_ahead(claim(FLOOD, 0)) == 7 + 100_000 + 200


@pytest.mark.parametrize(("cost", "weight"), [(-1, 1.0), (1, 0.0)])
def test_nonsense_is_refused(cost: int, weight: float) -> None:
    with pytest.raises(ValueError, match="cannot be queued"):
        AdmissionQueue().join(claim(QUIET, cost, weight=weight))
    with pytest.raises(ValueError, match="cannot be admitted"):
        AdmissionQueue().serve_at_once(claim(QUIET, cost, weight=weight))


@given(st.lists(st.tuples(st.sampled_from([FLOOD, QUIET, THIRD]), st.integers(1, 500)), min_size=1, max_size=60))
def test_backlogged_tenants_never_drift_apart_by_more_than_two_requests(asked: list[tuple[TenantId, int]]) -> None:
    """The fairness bound of start-time fair queueing: |W_i - W_j| <= l_i + l_j while both are backlogged."""
    queue = AdmissionQueue()
    for tenant, cost in asked:
        queue.join(claim(tenant, cost))
    largest = {tenant: max((cost for owner, cost in asked if owner == tenant), default=0) for tenant, _ in asked}
    work = dict.fromkeys(largest, 0)
    while (ticket := serve_next(queue)) is not None:
        work[ticket.claim.tenant] += ticket.claim.cost
        backlogged = [tenant for tenant in largest if queue.waiting_count(tenant)]
        for one in backlogged:
            for other in backlogged:
                assert abs(work[one] - work[other]) <= largest[one] + largest[other]
    assert work == {tenant: sum(cost for owner, cost in asked if owner == tenant) for tenant in largest}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1_000)), max_size=30))
def test_serving_at_once_leaves_the_same_order_behind_as_queueing(history: list[tuple[str, int]]) -> None:
    quick, slow = AdmissionQueue(), AdmissionQueue()
    for name, cost in history:
        quick.serve_at_once(claim(TenantId(name), cost))
        slow.join(claim(TenantId(name), cost))
        assert serve_next(slow) is not None
    for queue in (quick, slow):
        for name in "abcabc":
            queue.join(claim(TenantId(name), 100))
    orders = [[ticket.claim.tenant for ticket in served(queue)] for queue in (quick, slow)]
    assert orders[0] == orders[1]
