"""Which backend keeps which response: a conversation that goes on by its id can only go on there.

Decided here: how many ids are remembered, and that one is its tenant's alone. Not decided here: where ids are read
(``dialects``), what happens with one that is not remembered: it goes where any request goes, and the engine says 404
itself where it does not know it either.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from gateway.types import BackendName, TenantId

# About 30 MB when full; engines keep responses in memory too, and far fewer.
CAPACITY = 100_000
# Ids are some 40 characters; what is longer is nobody's.
_MOST_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who keeps a response, and whose it is."""

    backend: BackendName
    tenant: TenantId


class KeptResponses:
    """A bounded memory of the responses last seen, the least recently used forgotten first."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._keepers: OrderedDict[str, Keeper] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keepers)

    def learn(self, response_id: str, backend: BackendName, tenant: TenantId) -> None:
        """A backend answered with this id."""
        if len(response_id) > _MOST_CHARACTERS:
            return
        self._keepers[response_id] = Keeper(backend, tenant)
        self._keepers.move_to_end(response_id)
        if len(self._keepers) > self._capacity:
            self._keepers.popitem(last=False)

    def keeper(self, response_id: str) -> Keeper | None:
        """Who keeps it; ``None`` where that was never seen, or is forgotten."""
        found = self._keepers.get(response_id)
        if found is not None:
            self._keepers.move_to_end(response_id)
        return found
