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
    weight: float = 1.0


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
def test_while_two_tenants_wait_neither_gets_more_work_done_than_the_other(items: list[Item]) -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for item in items:
        queue.offer(item)
    most_s = max((item.cost_s for item in items), default=0.0)
    left = Counter(item.tenant for item in items)
    served_s: Counter[str] = Counter()
    for item in drained(queue):
        served_s[item.tenant] += item.cost_s  # type: ignore[assignment]  # seconds: a Counter adds what it is given
        left[item.tenant] -= 1
        waiting = [tenant for tenant in left if left[tenant]]
        assert all(served_s[item.tenant] - served_s[tenant] <= most_s + 1e-6 for tenant in waiting)


def test_a_tenant_of_large_images_gets_fewer_turns() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for _ in range(4):
        queue.offer(Item("large", 1, cost_s=4.0))
    for _ in range(8):
        queue.offer(Item("small", 1, cost_s=1.0))
    order = "".join(item.tenant[0] for item in drained(queue))
    assert order == "lsssslssssll"


def test_who_had_too_much_waits_when_it_comes_back_and_who_had_nothing_gets_no_more() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for item in (Item("a", 1, 5.0), Item("b", 1), Item("b", 1), Item("b", 1)):
        queue.offer(item)
    assert [queue.pop().tenant for _ in range(2)] == ["a", "b"]
    queue.offer(Item("a", 2))
    queue.offer(Item("c", 1))
    assert [item.tenant for item in drained(queue)] == ["c", "b", "b", "a"]


def test_heads_may_be_passed_over() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    first, second, third = Item("a", 1), Item("a", 1), Item("b", 1)
    for item in (first, second, third):
        queue.offer(item)
    assert list(queue.heads()) == [first, third]
    queue.take(third)
    assert list(queue.heads()) == [first]
    assert queue.tenants == 1


@given(Arrivals, st.integers(1, 12), st.integers(1, 12))
def test_room_for_several_is_told_as_it_would_turn_out(items: list[Item], capacity: int, count: int) -> None:
    queue: FairQueue[Item] = FairQueue(capacity)
    for item in items:
        queue.offer(item)
    told = queue.has_room("new", count)
    mine = [Item("new", 1) for _ in range(count)]
    turned_away = [queue.offer(item) for item in mine]
    assert told == (set(mine) <= set(queue))
    assert told == all(item is None or item.tenant != "new" for item in turned_away)


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
    assert queue.ahead_s("d", 1.0) == pytest.approx(3.0)
    assert set(queue) >= {lost}
    assert queue.pop() is lost
    queue.put_first(lost)
    queue.discard(lost)
    assert len(queue) == 2


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


def test_weights_are_shares() -> None:
    queue: FairQueue[Item] = FairQueue(100)
    for _ in range(12):
        queue.offer(Item("heavy", 1, weight=3.0))
        queue.offer(Item("light", 1))
    assert Counter(queue.pop().tenant for _ in range(8)) == {"heavy": 6, "light": 2}
    # Of the light one's ten and the heavy one's six: a third of ones own work, or three times as much.
    assert queue.ahead_s("heavy", 3.0, 3.0) == pytest.approx(6.0 + 3.0)
    assert queue.ahead_s("light", 1.0, 1.0) == pytest.approx(10.0 + 6.0)
    assert queue.ahead_s("new", 1.0, 0.5) == pytest.approx(6.0 + 2.0)
