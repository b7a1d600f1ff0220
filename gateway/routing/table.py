"""Which owners hold which contents, each owner's least recently used ones leaving first, in flat arrays of integers.

Decided here: the layout. One entry per (content, owner), 32 bytes in seven columns, and four to eight bytes for its
place in the hash: a dict of the same would take four times as much. Look-up is by content and finds all owners at once,
so that asking about one request costs the same for two backends and for a thousand. Not decided here: what a content
is, how much an owner has room for.

Contents are 64-bit hashes, evenly spread already. Two that collide make a wrong belief, nothing worse.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

# How far a chain is followed for holders. Who holds what everybody holds needs no complete list.
_STEPS_LIMIT = 48
_FIRST_BUCKETS = 1 << 10
_WRAP = 0xFFFFFFFF


@dataclass(slots=True)
class _Owner:
    """One owner's list from newest to oldest, and what its entries weigh. ``clock`` counts what entered its cache."""

    newest: int = 0
    oldest: int = 0
    weight: int = 0
    entries: int = 0
    clock: int = 0


class HolderTable:
    """At most ``entry_limit`` entries over all owners, shared out evenly among them.

    An entry's age is the weight that came in, or came back, since its last use: what an owner's cache of a given size
    still holds is what is younger than that size.
    """

    def __init__(self, entry_limit: int) -> None:
        if entry_limit < 1:
            raise ValueError("entry_limit must be at least 1")
        self._limit = entry_limit
        self._owners: dict[int, _Owner] = {}
        self._count = 0
        self._free = 0
        # Entry 0 stands for none; a free entry's next one is the free list.
        self._contents = array("Q", [0])
        self._owned_by = array("H", [0])
        self._weights = array("I", [0])
        self._stamps = array("I", [0])
        self._next = array("I", [0])
        self._newer = array("I", [0])
        self._older = array("I", [0])
        self._heads = array("I", bytes(4 * _FIRST_BUCKETS))
        self._mask = _FIRST_BUCKETS - 1

    def __len__(self) -> int:
        return self._count

    @property
    def byte_count(self) -> int:
        """Bytes of all columns, as allocated now."""
        columns = (self._contents, self._owned_by, self._weights, self._stamps, self._next, self._newer, self._older)
        return sum(memoryview(column).nbytes for column in (*columns, self._heads))

    def weight_of(self, owner: int) -> int:
        """What all contents of an owner weigh."""
        held = self._owners.get(owner)
        return 0 if held is None else held.weight

    def holds(self, owner: int, content: int) -> bool:
        """Whether this owner holds it."""
        return self._find(owner, content) > 0

    def holders(self, content: int) -> Sequence[tuple[int, int]]:
        """(owner, age) of every holder, the last to come first; not all of what very many hold."""
        entry = self._heads[content & self._mask]
        if not entry:
            return ()
        found = []
        contents, following = self._contents, self._next
        steps = _STEPS_LIMIT
        while entry and steps:
            if contents[entry] == content:
                owner = self._owned_by[entry]
                found.append((owner, (self._owners[owner].clock - self._stamps[entry]) & _WRAP))
            entry = following[entry]
            steps -= 1
        return found

    def use(self, owner: int, content: int, weight: int, *, fresh_below: int = _WRAP) -> None:
        """The owner has used this content now. One older than ``fresh_below`` had left its cache and comes back."""
        held = self._owners.get(owner)
        if held is None:
            held = self._owners[owner] = _Owner()
        entry = self._find(owner, content)
        if entry:
            if (held.clock - self._stamps[entry]) & _WRAP >= fresh_below:
                held.clock = (held.clock + self._weights[entry]) & _WRAP
            self._unlink(held, entry)
        else:
            if not self._make_room(held):
                return
            entry = self._insert(owner, content, weight)
            held.clock = (held.clock + weight) & _WRAP
            held.weight += weight
            held.entries += 1
        self._stamps[entry] = held.clock
        self._link(held, entry)

    def shrink(self, owner: int, weight_limit: int) -> None:
        """Let the least recently used contents of an owner go until the rest weighs no more; the newest one stays."""
        held = self._owners.get(owner)
        while held is not None and held.weight > weight_limit and held.oldest != held.newest:
            self._evict(held, held.oldest)

    def forget(self, owner: int) -> None:
        """Everything an owner holds."""
        held = self._owners.pop(owner, None)
        while held is not None and held.oldest:
            self._evict(held, held.oldest)

    def _find(self, owner: int, content: int) -> int:
        contents, owned_by, following = self._contents, self._owned_by, self._next
        entry = self._heads[content & self._mask]
        while entry and (contents[entry] != content or owned_by[entry] != owner):
            entry = following[entry]
        return entry

    def _make_room(self, held: _Owner) -> bool:
        share = max(1, self._limit // len(self._owners))
        while held.entries >= share or (self._count >= self._limit and held.oldest):
            self._evict(held, held.oldest)
        if self._count < self._limit:
            return True
        # Owners that came late take from those that had more than their share.
        fattest = max(self._owners.values(), key=lambda each: each.entries)
        self._evict(fattest, fattest.oldest)
        return True

    def _insert(self, owner: int, content: int, weight: int) -> int:
        if self._count >= len(self._heads):
            self._grow()
        entry = self._free
        if entry:
            self._free = self._next[entry]
            self._contents[entry], self._owned_by[entry], self._weights[entry] = content, owner, weight
        else:
            entry = len(self._contents)
            self._contents.append(content)
            self._owned_by.append(owner)
            self._weights.append(weight)
            for column in (self._stamps, self._next, self._newer, self._older):
                column.append(0)
        bucket = content & self._mask
        self._next[entry] = self._heads[bucket]
        self._heads[bucket] = entry
        self._count += 1
        return entry

    def _evict(self, held: _Owner, entry: int) -> None:
        self._unlink(held, entry)
        held.weight -= self._weights[entry]
        held.entries -= 1
        following = self._next
        bucket = self._contents[entry] & self._mask
        at = self._heads[bucket]
        if at == entry:
            self._heads[bucket] = following[entry]
        else:
            while following[at] != entry:
                at = following[at]
            following[at] = following[entry]
        following[entry] = self._free
        self._free = entry
        self._count -= 1

    def _link(self, held: _Owner, entry: int) -> None:
        self._older[entry], self._newer[entry] = held.newest, 0
        if held.newest:
            self._newer[held.newest] = entry
        else:
            held.oldest = entry
        held.newest = entry

    def _unlink(self, held: _Owner, entry: int) -> None:
        newer, older = self._newer[entry], self._older[entry]
        if newer:
            self._older[newer] = older
        else:
            held.newest = older
        if older:
            self._newer[older] = newer
        else:
            held.oldest = newer

    def _grow(self) -> None:
        """Twice the buckets, every entry hung up anew: rare, and a few hundred nanoseconds for each."""
        size = 2 * len(self._heads)
        self._heads = array("I", bytes(4 * size))
        self._mask = size - 1
        for held in self._owners.values():
            entry = held.oldest
            while entry:
                bucket = self._contents[entry] & self._mask
                self._next[entry] = self._heads[bucket]
                self._heads[bucket] = entry
                entry = self._newer[entry]
