from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.queue import AdmissionQueue, Room, Ticket
from gateway.types import TenantId

FLOOD, QUIET, THIRD = TenantId("flood"), TenantId("quiet"), TenantId("third")


def free(_: Ticket) -> Room:
    return Room.FREE


def served(queue: AdmissionQueue, room: Callable[[Ticket], Room] = free) -> list[Ticket]:
    tickets = []
    while (ticket := queue.admit(room)) is not None:
        tickets.append(ticket)
    return tickets


def test_within_a_tenant_the_first_comes_first() -> None:
    queue = AdmissionQueue()
    tickets = [queue.join(QUIET, cost) for cost in (900, 10, 50)]
    assert queue.waiting_kv_tokens(QUIET) == 960
    assert served(queue) == tickets
    assert len(queue) == 0
    assert queue.admit(free) is None


def test_a_flood_delays_another_tenant_by_at_most_one_request() -> None:
    queue = AdmissionQueue()
    for _ in range(100):
        queue.join(FLOOD, 1_000)
    queue.admit(free)
    quiet = queue.join(QUIET, 1_000)
    order = served(queue)
    assert order.index(quiet) <= 1


def test_shares_follow_cost_not_count() -> None:
    queue = AdmissionQueue()
    for _ in range(40):
        queue.join(FLOOD, 100)
        queue.join(QUIET, 10)
    first = served(queue)[:22]
    cost = {tenant: sum(ticket.kv_tokens for ticket in first if ticket.tenant == tenant) for tenant in (FLOOD, QUIET)}
    assert abs(cost[FLOOD] - cost[QUIET]) <= 100


def test_weights_divide_cost() -> None:
    queue = AdmissionQueue()
    for _ in range(30):
        queue.join(FLOOD, 10, weight=2.0)
        queue.join(QUIET, 10)
    first = served(queue)[:30]
    assert sum(ticket.tenant == FLOOD for ticket in first) == pytest.approx(20, abs=1)


def test_a_tenant_at_its_own_limit_is_passed_over() -> None:
    queue = AdmissionQueue()
    queue.join(FLOOD, 1)
    quiet = queue.join(QUIET, 500)
    assert served(queue, lambda ticket: Room.TENANT_FULL if ticket.tenant == FLOOD else Room.FREE) == [quiet]
    assert queue.waiting_count(FLOOD) == 1


def test_a_large_request_that_lacks_common_room_is_waited_for() -> None:
    queue = AdmissionQueue()
    queue.join(QUIET, 500)
    queue.join(FLOOD, 1)
    assert served(queue, lambda ticket: Room.ALL_FULL if ticket.kv_tokens > 100 else Room.FREE) == []


def test_what_a_tenant_could_not_use_is_not_saved_up() -> None:
    queue = AdmissionQueue()
    held = [queue.join(QUIET, 10) for _ in range(20)]
    for _ in range(50):
        queue.join(FLOOD, 10)

    def flood_only(ticket: Ticket) -> Room:
        return Room.TENANT_FULL if ticket.tenant == QUIET else Room.FREE

    for _ in range(30):
        assert queue.admit(flood_only) is not None
    after = served(queue)[:10]
    assert sum(ticket in held for ticket in after) == pytest.approx(5, abs=1)


def test_whoever_leaves_takes_nothing_along() -> None:
    queue = AdmissionQueue()
    for ticket in [queue.join(QUIET, 10_000) for _ in range(5)]:
        assert queue.leave(ticket)
        assert not queue.leave(ticket)
    assert (len(queue), queue.total_waiting_kv_tokens) == (0, 0)
    queue.join(FLOOD, 10)
    quiet = queue.join(QUIET, 10)
    assert served(queue)[1] == quiet


def test_idle_lanes_are_forgotten_once_they_owe_nothing() -> None:
    queue = AdmissionQueue()
    for number in range(100):
        queue.leave(queue.join(TenantId(f"tenant-{number}"), 5))
    assert queue._lanes == {}
    assert queue.waiting_kv_tokens(QUIET) == 0
    assert queue.waiting_count(QUIET) == 0


@pytest.mark.parametrize(("cost", "weight"), [(-1, 1.0), (1, 0.0)])
def test_nonsense_is_refused(cost: int, weight: float) -> None:
    with pytest.raises(ValueError, match="cannot be queued"):
        AdmissionQueue().join(QUIET, cost, weight=weight)


@given(st.lists(st.tuples(st.sampled_from([FLOOD, QUIET, THIRD]), st.integers(1, 500)), min_size=1, max_size=60))
def test_backlogged_tenants_never_drift_apart_by_more_than_two_requests(asked: list[tuple[TenantId, int]]) -> None:
    """The fairness bound of start-time fair queueing: |W_i - W_j| <= l_i + l_j while both are backlogged."""
    queue = AdmissionQueue()
    for tenant, cost in asked:
        queue.join(tenant, cost)
    largest = {tenant: max((cost for owner, cost in asked if owner == tenant), default=0) for tenant, _ in asked}
    work = dict.fromkeys(largest, 0)
    while (ticket := queue.admit(free)) is not None:
        work[ticket.tenant] += ticket.kv_tokens
        backlogged = [tenant for tenant in largest if queue.waiting_count(tenant)]
        for one in backlogged:
            for other in backlogged:
                assert abs(work[one] - work[other]) <= largest[one] + largest[other]
    assert work == {tenant: sum(cost for owner, cost in asked if owner == tenant) for tenant in largest}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1_000)), max_size=30))
def test_serving_at_once_leaves_the_same_order_behind_as_queueing(history: list[tuple[str, int]]) -> None:
    quick, slow = AdmissionQueue(), AdmissionQueue()
    for name, kv_tokens in history:
        tenant = TenantId(name)
        assert quick.serve_at_once(tenant, kv_tokens) is not None
        slow.join(tenant, kv_tokens)
        assert slow.admit(free) is not None
    for queue in (quick, slow):
        for name in "abcabc":
            queue.join(TenantId(name), 100)
    orders = [[ticket.tenant for ticket in served(queue)] for queue in (quick, slow)]
    assert orders[0] == orders[1]


def test_nobody_is_served_at_once_past_those_who_wait() -> None:
    queue = AdmissionQueue()
    queue.join(TenantId("a"), 10)
    assert queue.has_waiting
    assert queue.serve_at_once(TenantId("b"), 1) is None
    with pytest.raises(ValueError, match="-1"):
        AdmissionQueue().serve_at_once(TenantId("b"), -1)
