"""What engines are believed to hold under our ids: an LRU by bytes, corrected by misses, suspended where it fails."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.sent_ids import SentIds
from gateway.types import BackendName

A, B = BackendName("a"), BackendName("b")
CAPACITY = 100


def learn(belief: SentIds, *ids: str, weight: int = 10, returns: int = 0, believed: bool = False) -> None:
    belief.learn(A, returns, [(each, weight) for each in ids], capacity_bytes=CAPACITY, believed=believed)


def held(belief: SentIds, *ids: str, returns: int = 0, backend: BackendName = A) -> list[str]:
    return [ids[place] for place in sorted(belief.held(backend, returns, ids))]


def test_what_was_sent_is_held_by_that_backend_alone() -> None:
    belief = SentIds()
    assert held(belief, "x") == []
    learn(belief, "x", "y")
    assert held(belief, "y", "z", "x", "x") == ["y", "x", "x"]
    assert held(belief, "x", backend=B) == []
    assert belief.held_bytes(A) == 20
    assert belief.held_bytes(B) == 0
    belief.forget(A)
    assert held(belief, "x") == []


def test_bytes_bound_it_and_use_keeps() -> None:
    belief = SentIds()
    learn(belief, *"abcdefghij")
    learn(belief, "a")
    learn(belief, "k")
    assert held(belief, "a", "b", "k") == ["a", "k"]
    assert belief.held_bytes(A) == CAPACITY
    learn(belief, "giant", weight=CAPACITY + 1)
    assert held(belief, "giant", "a") == ["a"]


def test_tiny_pictures_do_not_take_our_memory() -> None:
    belief = SentIds(entry_limit=6)
    learn(belief, *"abcdefgh", weight=1)
    assert held(belief, *"abcdefgh") == list("cdefgh")
    belief.learn(B, 0, [("x", 1)], capacity_bytes=CAPACITY, believed=False)
    learn(belief, "i", weight=1)
    assert held(belief, *"efghi") == ["g", "h", "i"], "two backends, half as much each"
    assert belief.held_bytes(A) == 3


def test_backends_that_left_long_ago_are_forgotten() -> None:
    belief = SentIds()
    learn(belief, "x")
    for number in range(1000):
        name = BackendName(f"pod-{number}")
        belief.learn(name, 0, [("x", 1)], capacity_bytes=CAPACITY, believed=False)
    assert held(belief, "x") == []
    assert held(belief, "x", backend=BackendName("pod-0")) == ["x"]


def test_a_backend_that_came_back_holds_nothing_of_before() -> None:
    belief = SentIds()
    learn(belief, "x")
    assert held(belief, "x", returns=1) == []
    learn(belief, "y", returns=1)
    assert held(belief, "x", "y", returns=1) == ["y"]
    # Taken out and put in again under its name: it begins anew.
    assert held(belief, "y", returns=0) == []
    belief.missed(A, 0, ["y"])
    learn(belief, "z", returns=0)
    assert held(belief, "x", "y", "z", returns=0) == ["z"]


def test_a_miss_takes_all_that_was_used_less_recently_and_a_second_one_everything() -> None:
    belief = SentIds()
    learn(belief, *"abcd")
    belief.missed(A, 0, ["b", "unknown"])
    assert held(belief, *"abcd") == ["c", "d"]
    learn(belief, "c", believed=True)
    belief.missed(A, 0, ["d"])
    assert held(belief, "c") == ["c"]
    belief.missed(A, 0, ["x"])
    assert held(belief, "c") == []


def rounds_until_trusted(belief: SentIds) -> int:
    """Requests with bytes until the picture they bring may go alone again."""
    for number in range(1, 10_000):
        learn(belief, "x")
        if held(belief, "x"):
            return number
    raise AssertionError("never")


def test_an_engine_that_never_holds_anything_is_asked_ever_more_rarely() -> None:
    belief = SentIds()
    pauses = []
    for _ in range(14):
        pauses.append(rounds_until_trusted(belief))
        belief.missed(A, 0, ["x"])
    assert pauses == [1, 1, 1, 1, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096]


def test_hits_restore_belief() -> None:
    belief = SentIds()
    for _ in range(4):
        learn(belief, "x")
        belief.missed(A, 0, ["x"])
    assert rounds_until_trusted(belief) == 64
    for _ in range(8):
        learn(belief, "x", believed=True)
    for _ in range(4):
        learn(belief, "x")
        assert held(belief, "x")
        belief.missed(A, 0, ["x"])
    assert rounds_until_trusted(belief) == 64


def test_two_of_three_answered_keep_it_going_and_fewer_do_not() -> None:
    def suspended(hits_per_miss: int) -> bool:
        belief = SentIds()
        for _ in range(100):
            learn(belief, "x")
            if not held(belief, "x"):
                return True
            belief.missed(A, 0, ["x"])
            for _ in range(hits_per_miss):
                learn(belief, "x", believed=True)
        return False

    assert [suspended(hits) for hits in (0, 1, 2, 3)] == [True, True, False, False]


Request = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 60)), min_size=1, max_size=6)


@given(st.lists(Request, max_size=30))
def test_it_is_the_engines_own_lru(requests: list[list[tuple[str, int]]]) -> None:
    """The same requests through a plain model of vLLM's cache: nothing is believed that is not there."""
    belief = SentIds()
    engine: OrderedDict[str, int] = OrderedDict()
    weights: dict[str, int] = {}
    for request in requests:
        sent = [(image_id, weights.setdefault(image_id, weight)) for image_id, weight in request]
        ids = [image_id for image_id, _ in sent]
        assert {ids[place] for place in belief.held(A, 0, ids)} == {each for each in ids if each in engine}
        for image_id, weight in sent:
            engine.pop(image_id, None)
            engine[image_id] = weight
        while sum(engine.values()) > CAPACITY:
            engine.popitem(last=False)
        belief.learn(A, 0, sent, capacity_bytes=CAPACITY, believed=False)
        assert belief.held_bytes(A) == sum(engine.values()) <= CAPACITY


Step = st.tuples(st.sampled_from(["learn", "miss", "back"]), st.lists(st.sampled_from("abcdef"), max_size=4))


@given(st.lists(Step, max_size=40))
def test_whatever_happens_a_missed_picture_is_not_believed(steps: list[tuple[str, list[str]]]) -> None:
    belief, returns = SentIds(), 0
    for what, ids in steps:
        if what == "learn":
            learn(belief, *ids, returns=returns)
        elif what == "miss":
            belief.missed(A, returns, ids)
            assert held(belief, *ids, returns=returns) == []
        else:
            returns += 1
            assert held(belief, *"abcdef", returns=returns) == []
        assert 0 <= belief.held_bytes(A) <= CAPACITY
