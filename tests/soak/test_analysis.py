"""The analysis finds a leak in noise and finds none in noise alone; nothing here runs a gateway."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.soak.analysis import Row, Sample, Seen, Verdict, judge
from tests.soak.bounds import LONG, SHORT, Bounds, bounds_of, warm_up_s

MIB = 1 << 20
EXPECTED = {"text": frozenset({"200"})}


def samples(seed: int, minutes: float, leak_kib_a_minute: float = 0.0, **changes: float) -> list[Sample]:
    """A look every second at a gateway that breathes: an allocator's saw-tooth, steps that stay, and single peaks."""
    rng = random.Random(seed)
    found, step = [], 0.0
    for second in range(int(minutes * 60)):
        if rng.random() < 0.004:
            step += rng.uniform(-0.5, 0.5) * MIB
        saw = (second % 37) * 20 * 1024
        peak = rng.uniform(0, 40) * MIB if rng.random() < 0.03 else 0.0
        base = 80 * MIB + step + saw + peak + rng.gauss(0, 0.1) * MIB
        leaked = leak_kib_a_minute * 1024 * second / 60
        descriptors = 40 + rng.choice((0, 0, 1, 5)) + changes.get("descriptors_a_minute", 0.0) * second / 60
        found.append(Sample(float(second), base + leaked, 90 * MIB + peak + leaked, descriptors, 12.0, peak, 0.005))
    return found


def judged(looks: list[Sample], seen: list[Seen] | None = None, bounds: Bounds = SHORT) -> Verdict:
    return judge(looks, [Seen("text", 0.0, 0.1, "200")] if seen is None else seen, EXPECTED, bounds)


def violated(verdict: Verdict) -> set[str]:
    return {row.name for row in verdict.rows if not row.held}


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_no_leak(seed: int) -> None:
    assert judged(samples(seed, 2)).held
    assert judged(samples(seed, 24), bounds=LONG).held


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_of_one_and_a_half_bounds_is_found_in_the_same_noise(seed: int) -> None:
    assert "gateway memory, KiB a minute" in violated(judged(samples(seed, 2, 1.5 * SHORT.gateway_kib_a_minute)))
    assert "gateway memory, KiB a minute" in violated(
        judged(samples(seed, 24, 1.5 * LONG.gateway_kib_a_minute), bounds=LONG)
    )


def test_descriptors_that_creep_are_found() -> None:
    assert violated(judged(samples(3, 2, descriptors_a_minute=40.0))) == {"descriptors a minute"}


def test_an_answer_that_nobody_expects_is_a_violation_and_so_is_a_kind_that_never_came() -> None:
    verdict = judged(samples(1, 2), [Seen("text", 1.0, 0.1, "200"), Seen("text", 2.0, 0.1, "500 gateway_bug")])
    assert (verdict.held, verdict.unexpected) == (False, {"text: 500 gateway_bug": 1})
    assert judged(samples(1, 2), []).unexpected == {"text: never answered": 1}


def test_what_is_held_at_the_end_is_a_violation() -> None:
    rows = [Row("requests_inflight at the end", 1, "0", held=False)]
    assert not judge(samples(1, 2), [Seen("text", 0.0, 0.1, "200")], EXPECTED, SHORT, rows).held


@pytest.mark.parametrize(("after_s", "held"), [(0.1, True), (0.3, True), (9.0, True), (12.0, False)])
def test_latency_may_drift_by_the_ratio_or_by_little(after_s: float, held: bool) -> None:
    """One slow answer in a third moves no median."""
    seen = [Seen("text", float(at), after_s if at > 60 else 0.1, "200") for at in range(90)]
    seen.append(Seen("text", 5.0, 30.0, "200"))
    verdict = judged(samples(1, 2), seen)
    assert [(each.kind, each.held) for each in verdict.latencies] == [("text", held)]
    assert verdict.held is held


def test_a_machine_that_became_slower_is_no_drift() -> None:
    looks = [replace(look, errand_s=0.005 if look.at_s < 60 else 0.02) for look in samples(1, 2)]
    seen = [Seen("text", float(at), 4.0 if at < 60 else 24.0, "200") for at in range(120)]
    assert judged(looks, seen).held
    assert not judged(samples(1, 2), seen).held


def test_the_length_of_a_run_decides_its_bounds_and_its_warm_up() -> None:
    assert (bounds_of(3), bounds_of(30)) == (SHORT, LONG)
    assert (warm_up_s(3), warm_up_s(30)) == (60.0, 300.0)
