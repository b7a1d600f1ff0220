"""Codes that are never sent are told by one that may be."""

from __future__ import annotations

import pytest

from gateway.types.websocket import told_code


@pytest.mark.parametrize(("code", "told"), [(1005, 1000), (1006, 1011), (1000, 1000), (4321, 4321)])
def test_a_code_as_the_other_side_hears_it(code: int, told: int) -> None:
    assert told_code(code) == told
