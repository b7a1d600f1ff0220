"""What encoders said: recalled while it is kept, believed to be written for a time and not beyond a restart."""

from __future__ import annotations

from gateway.handoff import Encoding
from gateway.types import BackendName
from gateway.upstream.encodings import Encodings

ENCODER = BackendName("e")


def encoding(key: str) -> Encoding:
    return Encoding(key, {"metadata": {"image_grid_thw": [1, 2, 2]}})


def test_it_is_written_for_a_while_and_recalled_beyond() -> None:
    encodings = Encodings(kept_s=10.0)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    assert encodings.is_written("a", 109.9)
    assert not encodings.is_written("a", 110.0)
    assert encodings.recall("a") == encoding("a")
    assert encodings.recall("b") is None
    assert not encodings.is_written("b", 100.0)


def test_by_default_nothing_is_believed_to_be_written() -> None:
    encodings = Encodings(kept_s=0.0)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    assert not encodings.is_written("a", 100.0)


def test_a_restart_of_its_encoder_ends_the_belief() -> None:
    encodings = Encodings(kept_s=10.0)
    encodings.keep(encoding("a"), ENCODER, 100.0)
    encodings.keep(encoding("b"), BackendName("f"), 100.0)
    encodings.restarted(ENCODER, 101.0)
    assert (encodings.is_written("a", 102.0), encodings.is_written("b", 102.0)) == (False, True)
    encodings.keep(encoding("a"), ENCODER, 103.0)
    assert encodings.is_written("a", 104.0)


def test_the_least_recently_used_goes_first() -> None:
    encodings = Encodings(kept_s=10.0, capacity=2)
    for key in ("a", "b", "a", "c"):
        encodings.keep(encoding(key), ENCODER, 100.0)
    assert [encodings.recall(key) is not None for key in "abc"] == [True, False, True]
