from __future__ import annotations

import os

from benchmarks import idle


def test_memory_is_read_as_the_kernel_tells_it() -> None:
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    seen = idle._resident_bytes(os.getpid())
    assert seen % page_bytes == 0
    assert 10_000_000 < seen < 1 << 40


def test_the_table_has_a_row_for_each_kind() -> None:
    kinds = {kind: {"relay": 9_000 + number, "gateway": 10_000 + number} for number, kind in enumerate(idle._KINDS)}
    head, names, *rows = idle.table({"connections": 10_000, "kinds": kinds})
    assert "10000" in head
    assert names.split() == ["gateway", "relay"]
    assert [row.split() for row in rows] == [
        ["asked", "10,000", "9,000"], ["sent_much", "10,001", "9,001"], ["silent", "10,002", "9,002"]
    ]  # fmt: skip
