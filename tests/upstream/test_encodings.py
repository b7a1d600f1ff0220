"""What encoders said: recalled while it is kept, believed to be written for a time and not beyond a restart."""

from __future__ import annotations

from gateway.handoff import Encoding
from gateway.types import BackendName
from gateway.upstream.encodings import Encodings, Writer

ENCODER = Writer(BackendName("e"), 0)


def encoding(key: str) -> Encoding:
    return Encoding(key, {"metadata": {"image_grid_thw": [1, 2, 2]}})


def test_it_is_written_for_a_while_and_recalled_beyond() -> None:
    encodings = Encodings(kept_s=10.0)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    assert encodings.writer("a", 109.9) == ENCODER
    assert encodings.writer("a", 110.0) is None
    assert encodings.recall("a") == encoding("a")
    assert encodings.recall("b") is None
    assert encodings.writer("b", 100.0) is None


def test_by_default_nothing_is_believed_to_be_written() -> None:
    encodings = Encodings(kept_s=0.0)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    assert encodings.writer("a", 100.0) is None


def test_the_last_to_write_it_counts() -> None:
    encodings = Encodings(kept_s=10.0)
    again = Writer(ENCODER.name, 1)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    encodings.keep(encoding("a"), again, 101.0)
    assert encodings.writer("a", 110.5) == again


def test_the_least_recently_used_goes_first() -> None:
    encodings = Encodings(kept_s=10.0, capacity=2)
    for key in ("a", "b", "a", "c"):
        encodings.keep(encoding(key), ENCODER, 100.0)
    assert [encodings.recall(key) is not None for key in "abc"] == [True, False, True]
