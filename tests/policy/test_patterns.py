from __future__ import annotations

import pytest

from gateway.policy.patterns import matches


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "", True),
        ("Qwen/*", "Qwen/Qwen3", True),
        ("Qwen/*", "qwen/Qwen3", False),
        ("a.c", "abc", False),
        ("*-VL-*", "Qwen3-VL-8B", True),
        ("*\n", "a\n", True),
    ],
)
def test_patterns(pattern: str, name: str, *, fits: bool) -> None:
    assert matches(pattern, name) is fits
