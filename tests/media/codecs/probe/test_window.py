from __future__ import annotations

import pytest

from gateway.media.codecs.probe.window import EndOfData, NeedMore, Window

FILE = bytes(range(100))


def parted(head_bytes: int, tail_bytes: int) -> Window:
    return Window(FILE[:head_bytes], FILE[len(FILE) - tail_bytes :], len(FILE))


def test_reads_from_head_and_tail_by_the_files_own_offsets() -> None:
    window = parted(20, 10)
    assert window.read(5, 3) == FILE[5:8]
    assert window.read(92, 8) == FILE[92:]


def test_bytes_between_head_and_tail_are_asked_for() -> None:
    window = parted(20, 10)
    for offset, count in ((18, 4), (40, 1), (88, 4)):
        with pytest.raises(NeedMore) as caught:
            window.read(offset, count)
        assert caught.value.bytes_wanted == 100
    with pytest.raises(NeedMore):
        window.all()


def test_bytes_beyond_the_end_do_not_exist() -> None:
    for window in (parted(20, 10), parted(100, 100)):
        for offset, count in ((100, 1), (95, 6), (-1, 1)):
            with pytest.raises(EndOfData):
                window.read(offset, count)


def test_a_whole_file_is_known_as_such() -> None:
    assert parted(100, 5).all() == FILE
    assert not parted(99, 5).whole
    assert Window(FILE + b"more", FILE, 100).whole
