"""Catches image workers at work: a thread reads their CPU time every millisecond and strikes the busy ones.

A worker that was seen idle is busy once it has used more than 3 ms since. A new one first spends what starting costs
(learnt from the first workers) and is taken for busy well above that, or after it was seen idle.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

from tests.case_runner import procfs
from tests.case_runner.procfs import Family

_BUSY_NS = 3_000_000
_IDLE_S = 0.05
_NEW_IDLE_S = 0.25
_START_MARGIN = 1.5
_LOOK_S = 0.001
_LIST_EVERY = 15


@dataclass(slots=True)
class _Watched:
    cpu_ns: int
    changed_at_s: float
    baseline_ns: int | None = None  # CPU time at rest; None while it may still be starting
    struck: bool = False


class WorkerHunter:
    """Watches from ``start`` to ``stop``. Strikes with ``number`` while ``armed`` is set, at most ``strikes_left``."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._watched: dict[int, _Watched] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()
        self.armed = threading.Event()
        self.number = signal.SIGKILL
        self.strikes_left: int | None = None
        self.struck_at_s: list[float] = []
        self.seen: set[int] = set()
        self._start_cost_ns = 0

    def start(self) -> None:
        """Take every present worker for started and learn what starting cost."""
        now_s = time.monotonic()
        for pid in self._family.image_workers():
            cpu_ns = procfs.cpu_ns(pid)
            if cpu_ns is not None:
                self.seen.add(pid)
                self._watched[pid] = _Watched(cpu_ns, now_s, cpu_ns)
                self._start_cost_ns = max(self._start_cost_ns, cpu_ns)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    @property
    def idle(self) -> bool:
        """Whether every living worker is known to rest."""
        living = [each for each in self._watched.values() if not each.struck]
        return bool(living) and all(each.baseline_ns is not None for each in living)

    @property
    def deaths(self) -> int:
        """How many workers that were ever seen are gone."""
        return len(self.seen - set(self._family.image_workers()))

    def _run(self) -> None:
        turn = 0
        while not self._ended.wait(_LOOK_S):
            turn += 1
            if turn % _LIST_EVERY == 0:
                self._list()
            for pid, worker in list(self._watched.items()):
                self._look(pid, worker)

    def _list(self) -> None:
        for pid in self._family.image_workers():
            if pid not in self._watched:
                self.seen.add(pid)
                self._watched[pid] = _Watched(0, time.monotonic())

    def _look(self, pid: int, worker: _Watched) -> None:
        cpu_ns, now_s = procfs.cpu_ns(pid), time.monotonic()
        if cpu_ns is None:
            del self._watched[pid]
            return
        if cpu_ns != worker.cpu_ns:
            worker.cpu_ns, worker.changed_at_s = cpu_ns, now_s
        elif now_s - worker.changed_at_s > (_NEW_IDLE_S if worker.baseline_ns is None else _IDLE_S):
            worker.baseline_ns = cpu_ns
        limit_ns = self._start_cost_ns * _START_MARGIN if worker.baseline_ns is None else worker.baseline_ns + _BUSY_NS
        if cpu_ns > limit_ns and self.armed.is_set() and not worker.struck:
            self._strike(pid, worker)

    def _strike(self, pid: int, worker: _Watched) -> None:
        if self.strikes_left == 0:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, self.number)
            worker.struck = True
            self.struck_at_s.append(time.monotonic())
            if self.strikes_left is not None:
                self.strikes_left -= 1
