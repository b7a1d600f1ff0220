"""Waits are told since the beginning, of those who are there; the kernel's own numbers only grow."""

from __future__ import annotations

import os

from tests.case_runner.procfs import waited_ns
from tests.chaos.waiting import Waiting


def test_waits_are_counted_from_the_beginning_and_of_who_is_new_from_its_start() -> None:
    told: dict[int, int | None] = {1: 5_000_000_000, 2: 1_000_000_000}
    waiting = Waiting(lambda: list(told), told.__getitem__)
    assert waiting.so_far_s() == 0
    told |= {1: 6_000_000_000, 3: 2_500_000_000}
    assert waiting.so_far_s() == 3.5


def test_who_is_gone_or_of_whom_nobody_tells_does_not_count() -> None:
    told: dict[int, int | None] = {1: 5_000_000_000, 2: None}
    waiting = Waiting(lambda: list(told), told.__getitem__)
    told[1] = None
    assert waiting.so_far_s() == 0


def test_the_kernel_tells_of_us() -> None:
    before = waited_ns(os.getpid())
    after = waited_ns(os.getpid())
    assert before is None or (after is not None and after >= before >= 0)
    assert waited_ns(1 << 22) is None
