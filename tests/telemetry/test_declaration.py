from __future__ import annotations

from gateway.telemetry.declaration import Kind, counter, gauge, histogram, sampled_counter


def test_who_keeps_a_number_follows_from_its_kind() -> None:
    words = ("n", "h", "q", "a")
    assert [(made.kind, made.sampled) for made in (counter(*words), gauge(*words), sampled_counter(*words))] == [
        (Kind.COUNTER, False), (Kind.GAUGE, True), (Kind.COUNTER, True),
    ]  # fmt: skip
    made = histogram(*words, "label", buckets=(1.0, 2.0))
    assert (made.kind, made.labels, made.buckets, made.full_name) == (Kind.HISTOGRAM, ("label",), (1.0, 2.0), "vlmgw_n")
