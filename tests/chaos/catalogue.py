"""Every fault there is, in the order in which a whole run meets them: those of one shape stand together."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.faults import clients, clocks, life, networks, processes, resources
from tests.chaos.run import Fault

FAULTS: Sequence[Fault] = (
    *processes.FAULTS,
    *networks.FAULTS,
    *clients.FAULTS,
    *resources.FAULTS,
    *life.FAULTS,
    *clocks.FAULTS,
)


def chosen(*, short: bool = False, only: Sequence[str] = ()) -> list[Fault]:
    """Those asked for, those of one shape together. Raises ValueError for a name that is none."""
    known = {fault.name: fault for fault in FAULTS}
    if unknown := [name for name in only if name not in known]:
        raise ValueError(f"no such fault: {', '.join(unknown)}")
    found = [known[name] for name in only] or [fault for fault in FAULTS if fault.is_short or not short]
    shapes = list(dict.fromkeys(fault.shape for fault in found))
    return sorted(found, key=lambda fault: shapes.index(fault.shape))
