from __future__ import annotations

from gateway.media.recent import Recent


def test_the_least_used_goes_first_and_a_giant_is_not_kept() -> None:
    kept: Recent[bytes] = Recent(80, len)
    for name in "abcdefgh":
        kept.put(name, b"x" * 10)
    assert (len(kept), kept.weight) == (8, 80)
    assert kept.get("a") is not None
    kept.put("i", b"x" * 10)
    assert kept.get("b") is None
    assert kept.get("a") is not None
    kept.put("a", b"x" * 11)
    assert kept.get("a") is None
    assert kept.weight == 70
