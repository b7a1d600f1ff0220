"""Memory for decoding: what running jobs are predicted to need, all together and tenant by tenant.

Decided here: whether one more job may run now. The budget bounds the sum, but one job alone always runs; it bounds a
tenant to an equal share while others wait, so that one tenant's giants do not hold all of it. Not decided here: what a
job needs (``cost``), who is asked first (``fairqueue``). Plain data, no clock.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum, auto


class Fit(Enum):
    """What a job meets."""

    FITS = auto()
    TENANT_FULL = auto()  # another tenant's job may go first
    ALL_FULL = auto()  # waited for, else small jobs would starve a large one


class Headroom:
    """``reserved_bytes`` is what running jobs are predicted to need."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._by_tenant: Counter[str] = Counter()
        self.reserved_bytes = 0

    def fit(self, tenant: str, byte_count: int, waiting_tenants: int) -> Fit:
        """Whether a job may run beside those that do, while so many tenants wait (this one included)."""
        if not self.reserved_bytes:
            return Fit.FITS
        own = self._by_tenant[tenant]
        others = waiting_tenants > 1 or own < self.reserved_bytes
        if own and others and own + byte_count > self._budget_bytes // max(2, waiting_tenants):
            return Fit.TENANT_FULL
        return Fit.ALL_FULL if self.reserved_bytes + byte_count > self._budget_bytes else Fit.FITS

    def take(self, tenant: str, byte_count: int) -> None:
        self._by_tenant[tenant] += byte_count
        self.reserved_bytes += byte_count

    def give(self, tenant: str, byte_count: int) -> None:
        self._by_tenant[tenant] -= byte_count
        self.reserved_bytes -= byte_count
        if self._by_tenant[tenant] <= 0:
            del self._by_tenant[tenant]
