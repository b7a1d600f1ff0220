from __future__ import annotations

import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.calls import call


@pytest.mark.parametrize("surprise", [RuntimeError, ValueError, IndexError, TypeError, OverflowError])
def test_whatever_a_decoder_raises_is_one_documented_error(surprise: type[Exception]) -> None:
    def decode(data: bytes) -> bytes:
        raise surprise("private words")

    with pytest.raises(Undecodable, match="The XYZ's data") as caught:
        call("XYZ", decode, b"")
    assert caught.value.detail == "private words"


def test_a_lack_of_memory_stays_one() -> None:
    def decode(data: bytes) -> bytes:
        raise MemoryError

    with pytest.raises(MemoryError):
        call("XYZ", decode, b"")


def test_options_and_results_pass() -> None:
    assert call("XYZ", lambda data, more: data + more, b"a", more=b"b") == b"ab"
