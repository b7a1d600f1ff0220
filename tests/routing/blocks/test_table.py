from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.routing.blocks.table import BlockTable

# Few, and such that many begin at one place: chains of collisions and their removal are what can go wrong.
KEYS = st.integers(0, 40) | st.integers(0, 200).map(lambda number: number << 56) | st.integers(0, 2**64 - 1)


class TableBesideDictionary(RuleBasedStateMachine):
    """The table against a plain dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.table = BlockTable(words=True)
        self.model: dict[int, tuple[int, int]] = {}

    @rule(key=KEYS, bits=st.integers(1, 3), word=st.integers(0, 2**64 - 1))
    def add(self, key: int, bits: int, word: int) -> None:
        self.table.add(key, bits, word)
        self.model[key] = (self.model.get(key, (0, 0))[0] | bits, word)

    @rule(start=st.integers(0, 2**60), count=st.integers(1, 80))
    def add_many(self, start: int, count: int) -> None:
        for key in range(start, start + count):
            self.add(key, 1, key)

    @rule(key=KEYS, bits=st.integers(1, 3))
    def take(self, key: int, bits: int) -> None:
        held, word = self.model.get(key, (0, 0))
        assert self.table.take(key, bits) == held & ~bits
        self.model[key] = (held & ~bits, word)
        if not held & ~bits:
            del self.model[key]

    @rule(data=st.data())
    def take_known(self, data: st.DataObject) -> None:
        if self.model:
            self.take(data.draw(st.sampled_from(sorted(self.model))), 3)

    @invariant()
    def agrees(self) -> None:
        assert self.table.count == len(self.model)
        for key, (bits, word) in self.model.items():
            assert (self.table.bits(key), self.table.word(key)) == (bits, word)
        keys = [*self.model, 2**63 + 12345]
        assert self.table.run(keys, 0, len(keys)) == keys.index(2**63 + 12345)
        assert self.table.run(keys, 0, len(self.model)) == len(self.model)
        assert self.table.bits(2**63 + 12345) == 0 or 2**63 + 12345 in self.model


TestTable = TableBesideDictionary.TestCase
TestTable.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


def test_an_entry_takes_less_than_a_hundred_bytes() -> None:
    for words in (False, True):
        table, most = BlockTable(words=words), 0.0
        for key in range(1, 20_000):
            table.add(key * 0x9E3779B97F4A7C15 % 2**64, 1)
            if key > 100:
                most = max(most, table.byte_count / table.count)
        assert most <= (52 if words else 28)


def test_what_was_never_there_is_not_taken() -> None:
    table = BlockTable()
    assert (table.take(7, 1), table.bits(7), table.word(7), table.count) == (0, 0, None, 0)
