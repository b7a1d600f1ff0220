from __future__ import annotations

import fcntl
import mmap
import os

import pytest

from gateway.media.shm import GRANULE_BYTES, HeapBody, Slab, SlabBody, sealed_memfd

K64 = GRANULE_BYTES


@pytest.fixture
def slab() -> Slab:
    return Slab(16 * K64)


def test_an_extent_is_its_owners_until_closed_and_closing_twice_is_harmless(slab: Slab) -> None:
    extent = slab.take(K64 + 1)
    assert extent is not None
    assert (len(extent.view), slab.in_use_bytes) == (K64 + 1, 2 * K64)
    extent.close()
    extent.close()
    assert slab.in_use_bytes == 0
    with pytest.raises(ValueError, match="closed"):
        _ = extent.view
    with pytest.raises(ValueError, match="closed"):
        extent.hold()


def test_a_full_slab_gives_nothing(slab: Slab) -> None:
    extent = slab.take(16 * K64)
    assert extent is not None
    assert slab.take(1) is None
    extent.close()
    assert slab.take(1) is not None


def test_a_held_extent_outlives_its_owner(slab: Slab) -> None:
    extent = slab.take(10)
    assert extent is not None
    first = extent.hold()
    second = first.again()
    extent.close()
    first.close()
    first.close()
    assert slab.in_use_bytes == K64
    with pytest.raises(ValueError, match="closed"):
        first.again()
    second.close()
    assert slab.in_use_bytes == 0


def test_an_extent_grows_in_place_or_moves_with_its_bytes(slab: Slab) -> None:
    extent = slab.take(K64)
    assert extent is not None
    extent.view[:5] = b"hello"
    assert extent.grow(3 * K64)
    assert extent.offset == 0
    neighbour = slab.take(K64)
    assert neighbour is not None
    assert extent.grow(5 * K64)
    assert extent.offset == 4 * K64
    assert bytes(extent.view[:5]) == b"hello"
    assert slab.in_use_bytes == 6 * K64
    assert not extent.grow(17 * K64)
    assert extent.byte_count == 5 * K64
    assert extent.grow(1)
    extent.shrink(10)
    assert (extent.byte_count, slab.in_use_bytes) == (10, 2 * K64)
    extent.close()
    neighbour.close()
    assert slab.in_use_bytes == 0


def test_what_somebody_reads_neither_grows_nor_shrinks(slab: Slab) -> None:
    extent = slab.take(K64)
    assert extent is not None
    hold = extent.hold()
    with pytest.raises(ValueError, match="grow"):
        extent.grow(2 * K64)
    with pytest.raises(ValueError, match="shrink"):
        extent.shrink(1)
    hold.close()
    assert extent.grow(2 * K64)


def test_idle_memory_goes_back_to_the_system(slab: Slab) -> None:
    extent = slab.take(8 * K64)
    assert extent is not None
    extent.view[:] = b"x" * (8 * K64)
    extent.close()
    assert slab.trim(16 * K64) == 0
    slab.start_period()
    assert slab.trim(5 * K64) == 5 * K64
    assert slab.trim(16 * K64) == 3 * K64
    assert slab.trim(16 * K64) == 0
    assert bytes(slab.view(0, 4)) == b"\0\0\0\0"


def test_workers_can_neither_write_nor_truncate(slab: Slab) -> None:
    with pytest.raises(PermissionError):
        mmap.mmap(slab.read_only_fd, slab.byte_count)
    fd = sealed_memfd("test", 4096)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    os.close(fd)


def test_a_reader_sees_what_the_owner_wrote(slab: Slab) -> None:
    extent = slab.take(5)
    assert extent is not None
    extent.view[:] = b"bytes"
    with mmap.mmap(slab.read_only_fd, slab.byte_count, mmap.MAP_SHARED, mmap.PROT_READ) as theirs:
        assert theirs[extent.offset : extent.offset + 5] == b"bytes"


def test_closing_with_views_out_is_harmless_and_so_is_closing_twice() -> None:
    slab = Slab(K64)
    extent = slab.take(3)
    assert extent is not None
    view = extent.view
    slab.close()
    slab.close()
    view[:] = b"abc"
    assert bytes(view) == b"abc"


def test_a_slab_has_a_least_size() -> None:
    with pytest.raises(ValueError, match="65536"):
        Slab(10)


def test_a_body_in_the_slab_is_searched_and_cut_without_copies(slab: Slab) -> None:
    before, extent = slab.take(K64), slab.take(20)
    assert before is not None
    assert extent is not None
    extent.view[:11] = b'{"a":"text"'
    body = SlabBody(extent, 11)
    assert (body.start, body.stop) == (K64, K64 + 11)
    at = body.buffer.find(b"text", body.start, body.stop)
    assert body.buffer[at : at + 4] == b"text"
    assert bytes(body.view(at, at + 4)) == b"text"
    body.close()
    body.close()
    before.close()
    assert slab.in_use_bytes == 0


def test_a_body_on_the_heap_is_the_same_to_its_readers() -> None:
    body = HeapBody(b"some text")
    assert (body.start, body.stop, body.buffer.find(b"text", 0, 9)) == (0, 9, 5)
    assert bytes(body.view(5, 9)) == b"text"
    body.close()
    assert body.stop == 0
