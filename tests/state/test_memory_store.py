from __future__ import annotations

from hypothesis import settings

from gateway.quota.store import Store
from gateway.state.memory import MemoryStore
from tests.state.store_machine import LEASE_S, StoreMachine


class MemoryMachine(StoreMachine):
    def make_stores(self) -> list[Store]:
        return [MemoryStore(LEASE_S)]


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=60, stateful_step_count=40)
