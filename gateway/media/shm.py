"""The slab: one shared mapping that request bodies are drained into and workers read in place.

Decided here: who holds which bytes and for how long. Not decided here: where an extent lies (``extents``) and what is
in it. An extent has one owner; a job that a worker reads takes a *hold*, so that bytes whose owner left (the client
hung up) are used again only when the worker is done with them or certainly dead. Workers get a read-only descriptor,
and the file cannot be shrunk, so no worker can fault the loop's process by truncating it.
"""

from __future__ import annotations

import fcntl
import mmap
import os

from gateway.media.extents import ExtentMap

GRANULE_BYTES = 64 * 1024


def sealed_memfd(name: str, byte_count: int) -> int:
    """An anonymous sparse file of fixed size: neither shrunk nor grown by whoever gets the descriptor."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, byte_count)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd


class Slab:
    """``byte_count`` bytes of virtual shared memory, handed out in extents of whole granules of 64 KiB."""

    def __init__(self, byte_count: int) -> None:
        granules = byte_count // GRANULE_BYTES
        if granules < 1:
            raise ValueError(f"a slab needs at least {GRANULE_BYTES} bytes")
        self.byte_count = granules * GRANULE_BYTES
        self._map = ExtentMap(granules)
        fd = sealed_memfd("vlmgw-slab", self.byte_count)
        try:
            self.memory = mmap.mmap(fd, self.byte_count)
            self.read_only_fd = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(fd)
        self._view = memoryview(self.memory)
        self._closed = False

    @property
    def in_use_bytes(self) -> int:
        return self._map.in_use * GRANULE_BYTES

    def take(self, byte_count: int) -> Extent | None:
        """An extent of ``byte_count`` bytes, or ``None`` when no room of that size is free. Content is arbitrary."""
        first = self._map.take(_granules(byte_count))
        if first is None:
            return None
        return Extent(self, first, byte_count)

    def view(self, start: int, stop: int) -> memoryview:
        return self._view[start:stop]

    def start_period(self) -> None:
        """Begin a new period of observation for ``trim``."""
        self._map.start_period()

    def trim(self, limit_bytes: int) -> int:
        """Give memory above what the current period used back to the system, at most ``limit_bytes``; bytes given."""
        range_ = self._map.reclaim(max(1, limit_bytes // GRANULE_BYTES))
        if range_ is None:
            return 0
        first, count = range_
        self.memory.madvise(mmap.MADV_REMOVE, first * GRANULE_BYTES, count * GRANULE_BYTES)
        return count * GRANULE_BYTES

    def close(self) -> None:
        """Unmap; views that are still out keep the memory until they are gone."""
        if self._closed:
            return
        self._closed = True
        os.close(self.read_only_fd)
        self._view.release()
        try:
            self.memory.close()
        except BufferError:
            return

    def _grow(self, first: int, old_bytes: int, new_bytes: int) -> bool:
        more = _granules(new_bytes) - _granules(old_bytes)
        return more <= 0 or self._map.extend(first, _granules(old_bytes), more)

    def _give(self, first: int, granules: int) -> None:
        self._map.give(first, granules)


class Extent:
    """A range of the slab with one owner and any number of holds; its granules are free when the last one closes."""

    __slots__ = ("_first", "_holds", "_open", "byte_count", "slab")

    def __init__(self, slab: Slab, first: int, byte_count: int) -> None:
        self.slab = slab
        self.byte_count = byte_count
        self._first = first
        self._holds = 1
        self._open = True

    @property
    def offset(self) -> int:
        """Bytes from the start of the slab."""
        return self._first * GRANULE_BYTES

    @property
    def view(self) -> memoryview:
        """The bytes, writable, until the owner closes or grows the extent. Raises ValueError after ``close``."""
        if not self._open:
            raise ValueError("the extent is closed")
        return self.slab.view(self.offset, self.offset + self.byte_count)

    def grow(self, byte_count: int) -> bool:
        """Make room for ``byte_count`` bytes, in place or by moving (then ``offset`` changes); ``False`` when full.

        Only the owner of an extent that nobody else holds may grow it. Raises ValueError otherwise.
        """
        if not self._open or self._holds != 1:
            raise ValueError("only an extent that nobody else reads can grow")
        if byte_count <= self.byte_count:
            return True
        if not self.slab._grow(self._first, self.byte_count, byte_count):  # noqa: SLF001 - an extent is part of its slab
            return self._move(byte_count)
        self.byte_count = byte_count
        return True

    def shrink(self, byte_count: int) -> None:
        """Keep the first ``byte_count`` bytes (at least one granule) and give the rest back."""
        if not self._open or self._holds != 1 or byte_count > self.byte_count:
            raise ValueError("only an extent that nobody else reads can shrink")
        keep, have = _granules(byte_count), _granules(self.byte_count)
        self.byte_count = byte_count
        if keep < have:
            self.slab._give(self._first + keep, have - keep)  # noqa: SLF001 - an extent is part of its slab

    def hold(self) -> Hold:
        """Keep the bytes where they are, whatever the owner does. Raises ValueError once the owner has left."""
        if not self._open:
            raise ValueError("the extent is closed")
        self._holds += 1
        return Hold(self)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._drop()

    def _drop(self) -> None:
        self._holds -= 1
        if self._holds == 0:
            self.slab._give(self._first, _granules(self.byte_count))  # noqa: SLF001 - an extent is part of its slab

    def _move(self, byte_count: int) -> bool:
        other = self.slab.take(byte_count)
        if other is None:
            return False
        other.view[: self.byte_count] = self.view
        self._first, other._first = other._first, self._first  # noqa: SLF001 - the two change places
        self.byte_count, other.byte_count = other.byte_count, self.byte_count
        other.close()
        return True


class Hold:
    """One reader's claim on an extent's bytes; ``close`` is synchronous and safe to call twice.

    While any hold is open the extent neither moves nor is used for anything else, even when its owner has left.
    """

    __slots__ = ("_extent", "offset")

    def __init__(self, extent: Extent) -> None:
        self._extent: Extent | None = extent
        self.offset = extent.offset

    def again(self) -> Hold:
        """Another reader's claim on the same bytes. Raises ValueError once this one is closed."""
        if self._extent is None:
            raise ValueError("the hold is closed")
        self._extent._holds += 1  # noqa: SLF001 - as `Extent.hold` does while the owner is there
        return Hold(self._extent)

    def close(self) -> None:
        extent, self._extent = self._extent, None
        if extent is not None:
            extent._drop()  # noqa: SLF001 - the claim that `hold` counted


class SlabBody:
    """A request body in the slab (``ports.Body``). ``byte_count`` may be less than the extent has."""

    __slots__ = ("_byte_count", "extent")

    def __init__(self, extent: Extent, byte_count: int) -> None:
        self.extent = extent
        self._byte_count = byte_count

    @property
    def buffer(self) -> mmap.mmap:
        return self.extent.slab.memory

    @property
    def start(self) -> int:
        return self.extent.offset

    @property
    def stop(self) -> int:
        return self.extent.offset + self._byte_count

    def view(self, start: int, stop: int) -> memoryview:
        return self.extent.slab.view(start, stop)

    def close(self) -> None:
        self.extent.close()


class HeapBody:
    """A request body in ordinary memory (``ports.Body``), for small requests and for offline use."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def buffer(self) -> bytes:
        return self._data

    @property
    def start(self) -> int:
        return 0

    @property
    def stop(self) -> int:
        return len(self._data)

    def view(self, start: int, stop: int) -> memoryview:
        return memoryview(self._data)[start:stop]

    def close(self) -> None:
        self._data = b""


def _granules(byte_count: int) -> int:
    return max(1, -(-byte_count // GRANULE_BYTES))
