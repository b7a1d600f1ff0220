from __future__ import annotations

import pytest

from gateway.errors import ImageTooLarge
from gateway.media.looked import LookedSources
from gateway.media.room import PREPARED, Room
from gateway.types import ImageFormat, Prepared, Size


def picture(byte_count: int) -> Prepared:
    return Prepared(b"x" * byte_count, Size(1, 1), ImageFormat.PNG, byte_count)


def test_files_go_before_outputs_and_all_goes_in_the_end() -> None:
    room, outputs = Room(100), Room(100)
    looked = LookedSources((), room.share(10), outputs.share(10, PREPARED))
    looked.share.take(7)
    looked.files["a"] = b"1234567"
    one = picture(6)
    looked.hold_output(one)
    looked.hold_output(one)
    assert (room.held_bytes, outputs.held_bytes) == (7, 6)
    with pytest.raises(ImageTooLarge, match="The prepared images together are larger than 10 bytes"):
        looked.hold_output(picture(5))
    looked.drop_files()
    assert (looked.files, room.held_bytes, outputs.held_bytes) == ({}, 0, 6)
    looked.close()
    looked.close()
    assert outputs.held_bytes == 0
