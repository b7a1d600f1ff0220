"""How long the parts of a system had to wait for a CPU, which is nobody's fault but the machine's.

Decided here: waits of all of them are added up, since a request passes through one after the other. Where the kernel
does not tell, nobody waited. Not decided here: whose waits count, and what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.case_runner.procfs import waited_ns

_NS_PER_S = 1e9


class Waiting:
    """From now on, of whoever ``pids`` names then: of one that is new, since its start."""

    def __init__(self, pids: Callable[[], Iterable[int]], waited: Callable[[int], int | None] = waited_ns) -> None:
        self._pids = pids
        self._waited = waited
        self._before = self._now()

    def so_far_s(self) -> float:
        return sum(ns - self._before.get(pid, 0) for pid, ns in self._now().items()) / _NS_PER_S

    def _now(self) -> dict[int, int]:
        return {pid: ns for pid in self._pids() if (ns := self._waited(pid)) is not None}
