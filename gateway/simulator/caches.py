"""The engine's three caches, without a clock or a loop: KV blocks with their prefix cache, and two LRUs for pictures.

KV is handed out for a request's whole life when it is admitted (prompt and planned output), so the simulator queues
where a real engine might preempt. Blocks of finished requests stay until their room is needed, least recently used
first, as in vLLM's block pool.
"""

import hashlib
from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.simulator.prompt import Span

Value = TypeVar("Value")


def block_hashes(token_ids: Sequence[int], spans: Sequence[Span], salt: str | None, block_size: int) -> list[bytes]:
    """One chained hash for each full block: tokens, the pictures that overlap it with their place, and the salt.

    The salt enters the first block only and through the chain all others, so two salts share nothing.
    """
    hashes: list[bytes] = []
    parent = b""
    for start in range(0, len(token_ids) - len(token_ids) % block_size, block_size):
        end = start + block_size
        digest = hashlib.sha256(parent)
        digest.update(array("Q", token_ids[start:end]).tobytes())
        for span in spans:
            if span.offset < end and span.offset + span.length > start:
                digest.update(
                    f"mm:{len(span.identifier)}:{span.identifier}:{span.offset - start};".encode(
                        "utf-8", "surrogatepass"
                    )
                )
        if start == 0 and salt:
            digest.update(f"salt:{salt}".encode("utf-8", "surrogatepass"))
        parent = digest.digest()
        hashes.append(parent)
    return hashes


@dataclass(frozen=True, slots=True)
class Lease:
    """What one running request holds. `hit_blocks` of the prompt were there already."""

    prompt_hashes: tuple[bytes, ...]
    private_blocks: int
    hit_blocks: int


class BlockPool:
    """A fixed number of KV blocks. Prompt blocks are shared by hash, all others belong to one request."""

    def __init__(self, capacity_blocks: int) -> None:
        self.capacity_blocks = capacity_blocks
        self._holders: Counter[bytes] = Counter()
        self._idle: OrderedDict[bytes, None] = OrderedDict()
        self._private_blocks = 0

    @property
    def used_blocks(self) -> int:
        """Blocks that running requests hold; idle cached blocks count as free."""
        return len(self._holders) + self._private_blocks

    def known_prefix(self, hashes: Sequence[bytes]) -> int:
        """How many leading blocks are there, held or idle."""
        for index, block in enumerate(hashes):
            if block not in self._holders and block not in self._idle:
                return index
        return len(hashes)

    def acquire(self, hashes: Sequence[bytes], total_blocks: int, usable_hits: int) -> Lease | None:
        """Take `total_blocks` for a request whose full prompt blocks are `hashes`; None when there is no room now.

        At most `usable_hits` blocks count as hits: an engine always computes the last prompt token itself.
        """
        unique = tuple(dict.fromkeys(hashes))
        hits = min(self.known_prefix(hashes), usable_hits)
        private = total_blocks - len(unique)
        newly_held = sum(1 for block in unique if block not in self._holders)
        if self.used_blocks + newly_held + private > self.capacity_blocks:
            return None
        for block in unique:
            self._idle.pop(block, None)
        self._holders.update(unique)
        self._private_blocks += private
        self._evict_idle()
        return Lease(prompt_hashes=unique, private_blocks=private, hit_blocks=hits)

    def release(self, lease: Lease) -> None:
        """Give a lease back; its prompt blocks stay as idle cache."""
        self._private_blocks -= lease.private_blocks
        for block in lease.prompt_hashes:
            self._holders[block] -= 1
            if self._holders[block] == 0:
                del self._holders[block]
                self._idle[block] = None
        self._evict_idle()

    def forget_idle(self) -> None:
        """Empty the prefix cache; what running requests hold stays."""
        self._idle.clear()

    def _evict_idle(self) -> None:
        while len(self._idle) + self.used_blocks > self.capacity_blocks:
            self._idle.popitem(last=False)


class WeightedLru(Generic[Value]):
    """Least recently used, bounded by the sum of weights (bytes, tokens). What exceeds the bound alone is not kept."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: str, value: Value, weight: int) -> None:
        previous = self._entries.pop(key, None)
        if previous is not None:
            self._weight -= previous[1]
        if weight > self._capacity:
            return
        self._entries[key] = (value, weight)
        self._weight += weight
        while self._weight > self._capacity:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._weight -= dropped

    def clear(self) -> None:
        self._entries.clear()
        self._weight = 0
