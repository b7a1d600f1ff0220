"""Which granules of the slab are free: best fit with coalescing, as plain arithmetic.

Decided here: where an extent lies. Not decided here: what a granule is or who holds it (``shm``). Taking always uses
the low end of the smallest range that fits, lowest address first, so that the never-touched end of the slab is the
last resort and pages that are already in memory are used again.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class ExtentMap:
    """Free ranges of ``granules`` numbered from 0. All counts are granules; operations are O(free ranges)."""

    def __init__(self, granules: int) -> None:
        self._free: list[tuple[int, int]] = [(0, granules)]  # (first, count), sorted, never adjacent
        self.granules = granules
        self.in_use = 0
        # One past the highest granule taken since the last `start_period`, and the highest that may hold pages.
        self._period_end = 0
        self._dirty_end = 0

    def take(self, count: int) -> int | None:
        """The first granule of ``count`` free ones in a row, or ``None``."""
        fitting = [(length, first) for first, length in self._free if length >= count]
        if count < 1 or not fitting:
            return None
        length, first = min(fitting)
        self._cut(first, length, count)
        return first

    def extend(self, first: int, count: int, more: int) -> bool:
        """Let the extent ``first, count`` have the ``more`` granules behind it, if they are free."""
        end = first + count
        at = bisect_left(self._free, (end, 0))
        if at == len(self._free) or self._free[at][0] != end or self._free[at][1] < more:
            return False
        self._cut(end, self._free[at][1], more)
        return True

    def give(self, first: int, count: int) -> None:
        """Put granules back, joined with free neighbours. Raises ValueError if any of them is free already."""
        end = first + count
        at = bisect_left(self._free, (first, 0))
        if at < len(self._free) and self._free[at][0] < end:
            raise ValueError("granules given back twice")
        if at > 0 and sum(self._free[at - 1]) > first:
            raise ValueError("granules given back twice")
        self.in_use -= count
        if at < len(self._free) and self._free[at][0] == end:
            count += self._free.pop(at)[1]
        if at > 0 and sum(self._free[at - 1]) == first:
            first, before = self._free.pop(at - 1)
            count += before
        insort(self._free, (first, count))

    def start_period(self) -> None:
        """Forget how far up the slab was used before now, except by extents that are still out."""
        last_first, last_count = self._free[-1] if self._free else (self.granules, 0)
        tail_is_free = last_first + last_count == self.granules
        self._period_end = last_first if tail_is_free else self.granules

    def reclaim(self, limit: int) -> tuple[int, int] | None:
        """Up to ``limit`` granules (first, count), free and unused in this period, whose pages may be dropped now."""
        first = max(self._period_end, self._dirty_end - limit)
        count = self._dirty_end - first
        if count <= 0:
            return None
        self._dirty_end = first
        return first, count

    def _cut(self, first: int, length: int, count: int) -> None:
        at = bisect_left(self._free, (first, 0))
        if length == count:
            self._free.pop(at)
        else:
            self._free[at] = (first + count, length - count)
        self.in_use += count
        self._period_end = max(self._period_end, first + count)
        self._dirty_end = max(self._dirty_end, first + count)
