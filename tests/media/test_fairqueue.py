from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.fairqueue import FairQueue


@dataclass(eq=False)
class Item:
    tenant: str
    flow: int
    cost_s: float = 1.0


Arrivals = st.lists(st.builds(Item, st.sampled_from("abc"), st.integers(0, 2), st.floats(0.001, 9.0)), max_size=40)


def drained(queue: FairQueue[Item]) -> list[Item]:
    return [queue.pop() for _ in range(len(queue))]


@given(Arrivals)
def test_nothing_is_lost_and_a_flow_keeps_its_order(items: list[Item]) -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for item in items:
        assert queue.offer(item) is None
    assert set(queue) == set(items)
    order = drained(queue)
    assert set(order) == set(items)
    for item in items:
        lane = [other for other in items if (other.tenant, other.flow) == (item.tenant, item.flow)]
        assert [other for other in order if other in lane] == lane
    assert (len(queue), queue.cost_s, queue.head()) == (0, 0.0, None)


@given(Arrivals)
def test_while_two_tenants_wait_neither_is_served_twice_more_than_the_other(items: list[Item]) -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for item in items:
        queue.offer(item)
    left = Counter(item.tenant for item in items)
    served: Counter[str] = Counter()
    for item in drained(queue):
        served[item.tenant] += 1
        left[item.tenant] -= 1
        waiting = [tenant for tenant in left if left[tenant]]
        assert all(served[tenant] >= served[item.tenant] - 1 for tenant in waiting)


@given(Arrivals, st.integers(1, 12))
def test_a_full_line_turns_away_only_from_the_longest_lane(items: list[Item], capacity: int) -> None:
    queue: FairQueue[Item] = FairQueue(capacity)
    for item in items:
        before = Counter(other.tenant for other in queue)
        turned_away = queue.offer(item)
        assert len(queue) <= capacity
        if sum(before.values()) < capacity:
            assert turned_away is None
            continue
        assert turned_away is not None
        before[item.tenant] += 1
        assert before[turned_away.tenant] >= max(before.values()) - 1
        assert turned_away not in list(queue)


@given(Arrivals, st.data())
def test_discarding_leaves_the_others(items: list[Item], data: st.DataObject) -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for item in items:
        queue.offer(item)
    gone = data.draw(st.lists(st.sampled_from(items), unique=True)) if items else []
    for item in (*gone, *gone):
        queue.discard(item)
    assert set(queue) == set(items) - set(gone)
    assert queue.cost_s == pytest.approx(sum(item.cost_s for item in queue))


def test_a_request_of_many_images_lets_others_of_its_tenant_through() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    many = [Item("a", 1) for _ in range(20)]
    one = Item("a", 2)
    for item in (*many, one):
        queue.offer(item)
    assert drained(queue).index(one) == 1


def test_a_job_that_lost_its_worker_is_next() -> None:
    queue: FairQueue[Item] = FairQueue(2)
    queue.offer(Item("a", 1))
    queue.offer(Item("b", 1))
    lost = Item("c", 1)
    queue.put_first(lost)
    assert len(queue) == 3
    assert queue.pop() is lost


def test_what_is_ahead_is_ones_own_and_as_much_of_each_other() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for _ in range(30):
        queue.offer(Item("greedy", 1, cost_s=2.0))
    queue.offer(Item("small", 1, cost_s=0.5))
    assert queue.ahead_s("new", 1.0) == pytest.approx(1.0 + 0.5)
    assert queue.ahead_s("small", 1.0) == pytest.approx(0.5 + 1.5)
    assert queue.ahead_s("greedy", 1.0) == pytest.approx(60.0 + 0.5)


def test_an_empty_queue_has_nothing_to_give() -> None:
    with pytest.raises(IndexError):
        FairQueue[Item](1).pop()
