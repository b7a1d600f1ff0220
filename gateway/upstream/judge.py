"""What requests met on each backend becomes a judgement: who is an outlier among the backends of its model.

Decided here: when the fleet is compared, with whom, and what is told of it. Not decided here: what makes an outlier
(``outliers``), what a failure is (``blame``), what ejection means to routing (``standing``).
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.types import BackendName, RequestCost
from gateway.upstream.membership import Tell
from gateway.upstream.outliers import OutlierRules, Outliers, expected_s
from gateway.upstream.registry import Backend, Registry


class Judge:
    """Belongs to one service; every call may compare the fleet, when that is due."""

    def __init__(self, registry: Registry, rules: OutlierRules, tell: Tell) -> None:
        self._registry = registry
        self._outliers = Outliers(rules)
        self._tell = tell

    @property
    def ejections(self) -> dict[tuple[BackendName, str], int]:
        """How many so far, by backend and reason."""
        return {(name, why.value): count for (name, why), count in dict(self._outliers.counts).items()}

    def answered(self, backend: Backend, now_s: float) -> None:
        self._outliers.answered(backend.name, now_s)
        self._compare(now_s)

    def failed(self, backend: Backend, now_s: float, *, late: bool = False) -> None:
        self._outliers.failed(backend.name, now_s, late=late)
        self._compare(now_s)

    def took(self, backend: Backend, now_s: float, seconds: float, cost: RequestCost | None, *, streamed: bool) -> None:
        """How late the answer, or a stream's first event, was; nothing is said of requests of unknown cost."""
        if cost is not None:
            self._outliers.took(backend.name, now_s, seconds, expected_s(cost, streamed=streamed))

    def forget(self, name: BackendName) -> None:
        self._outliers.forget(name)

    def _compare(self, now_s: float) -> None:
        if not self._outliers.is_due(now_s):
            return
        usable = frozenset(each.name for each in self._registry if each.standing.is_healthy(now_s))
        ejected = frozenset(each.name for each in self._registry if each.standing.is_ejected(now_s))
        for ejection in self._outliers.sweep(now_s, _pools(self._registry), usable, ejected):
            self._registry.eject(ejection.name, ejection.until_s)
            seconds = round(ejection.until_s - now_s, 1)
            self._tell("warning", "backend_ejected", backend=ejection.name, reason=ejection.why.value, for_s=seconds)


def _pools(registry: Iterable[Backend]) -> list[list[BackendName]]:
    """Backends by what they serve, as far as it is known; a helper is compared with its like."""
    pools: dict[object, list[BackendName]] = {}
    for backend in registry:
        pools.setdefault(backend.kinship, []).append(backend.name)
    return [pool for pool in pools.values() if len(pool) > 1]
