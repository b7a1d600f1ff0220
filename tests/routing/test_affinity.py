"""What backends are believed to hold: recent, bounded, forgotten on restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.affinity import ImageIndex
from gateway.types import BackendName

A, B = BackendName("a"), BackendName("b")


def test_each_backend_has_its_own() -> None:
    index = ImageIndex(10)
    index.learn(A, [b"1", b"2"])
    index.learn(B, [b"2"])
    assert index.held(A, [b"1", b"2", b"3"]) == 2
    assert index.held(B, [b"1", b"2", b"3"]) == 1
    assert index.held(BackendName("c"), [b"1"]) == 0
    index.forget(A)
    assert index.held(A, [b"1", b"2"]) == 0
    assert index.count(B) == 1


def test_use_keeps_and_looking_does_not() -> None:
    index = ImageIndex(2)
    index.learn(A, [b"1", b"2"])
    index.learn(A, [b"1"])
    index.held(A, [b"2"])
    index.learn(A, [b"3"])
    assert [index.held(A, [digest]) for digest in (b"1", b"2", b"3")] == [1, 0, 1]


def test_it_needs_room_for_one() -> None:
    with pytest.raises(ValueError, match="capacity"):
        ImageIndex(0)


@given(st.integers(1, 8), st.lists(st.lists(st.binary(max_size=2), max_size=6), max_size=20))
def test_it_never_grows_past_its_bound_and_holds_the_latest(capacity: int, uses: list[list[bytes]]) -> None:
    index = ImageIndex(capacity)
    for images in uses:
        index.learn(A, images)
        assert index.count(A) <= capacity
        if images:
            assert index.held(A, images[-1:]) == 1
