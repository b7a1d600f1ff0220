"""The words of the seam."""

from __future__ import annotations

from gateway.routing.holding import NOTHING, RouteKey


def test_a_key_without_content_asks_for_nothing() -> None:
    assert (RouteKey().encode_patches, NOTHING.images, NOTHING.exact) == (0, 0, False)
    assert RouteKey((b"1", b"2"), (100, 50)).encode_patches == 150
