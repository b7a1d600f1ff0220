from __future__ import annotations

from collections import Counter

from benchmarks.timing import Elsewhere, Timing, interleave, machine_facts


def test_every_contender_runs_once_a_round_and_once_before() -> None:
    ran: Counter[str] = Counter()
    timings = interleave({name: lambda name=name: ran.update((name,)) for name in "abc"}, rounds=4)  # type: ignore[misc]  # the default binds the loop's value
    assert ran == {"a": 5, "b": 5, "c": 5}
    assert set(timings) == {"a", "b", "c"}


def test_what_worked_elsewhere_counts_as_it_says() -> None:
    assert interleave({"away": lambda: Elsewhere(7.0)}, rounds=3)["away"] == Timing(7.0, 7.0)


def test_the_machine_is_described() -> None:
    assert set(machine_facts()) == {"cpu", "cpus", "load_average_1min", "python", "kernel"}
