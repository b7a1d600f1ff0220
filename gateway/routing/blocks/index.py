"""What one publisher (a backend, or one of its data-parallel ranks) holds, from the events that it publishes.

Decided here: what an event does to the table, which events are not for us, how much may be kept. Not decided here: in
which order and from where events come. One thread applies, others look up (`table`). An entry takes at most 79 bytes,
27 where the engine's own hashes are reproduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.routing.blocks.chain import MASK_64, Chain, Key, Recipe, content_hash
from gateway.routing.blocks.table import BlockTable

# vLLM 0.32.0 distributed/kv_events.py, SGLang 0.5.23: where a block lies. From elsewhere it is loaded, not computed.
GPU, OFFLOADED = 1, 2
_GPU_WORDS = frozenset({None, "GPU"})
# Not at the publisher's own machine: as near to every other backend.
_REMOTE = "REMOTE"
_MOST_ADAPTERS = 1024
# Blocks that are hashed before the first is looked for.
_FIRST_STRIDE = 8
# Kinds of vLLM's KV cache groups that keep a prompt's whole prefix; a window's or a state's blocks do not tell.
_WHOLE_PREFIX = frozenset({None, "full_attention", "mla_attention"})


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks one after the other, the first behind ``parent``. ``keys``: one entry a block; ``None``: none was sent.

    ``adapter`` is the LoRA's name under which the prompt was computed.
    """

    blocks: Sequence[int]
    parent: int | None
    token_ids: Sequence[int]
    block_tokens: int
    keys: Sequence[Sequence[Key]] | None = None
    medium: str | None = None
    group: int | None = None
    kind: str | None = None
    locality: str | None = None
    adapter: str | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks that are no longer on this medium."""

    blocks: Sequence[int]
    medium: str | None = None
    group: int | None = None
    locality: str | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """Nothing is held any more."""


BlockEvent: TypeAlias = Stored | Removed | Cleared


def block_number(name: int | bytes) -> int:
    """The last 64 bits of a block's name as published: signed or not, or the bytes of the whole hash."""
    return name & MASK_64 if isinstance(name, int) else int.from_bytes(name[-8:], "big")


class BlockIndex:
    """The blocks of one publisher, named by the engine (``engine_names``) or by their contents."""

    def __init__(self, limit_entries: int, *, engine_names: bool) -> None:
        self._limit = limit_entries
        self._engine_names = engine_names
        self.block_tokens: int | None = None
        self.orphans = self.overflowed = 0
        self.adapters: set[str] = set()
        self._group: int | None = None
        self._restart()

    def _restart(self) -> None:
        # By the engine's names: where each lies and, where these are not ours, which name of ours it has.
        self._blocks = BlockTable(words=not self._engine_names)
        self._ours = self._blocks if self._engine_names else BlockTable()

    @property
    def entries(self) -> int:
        return self._blocks.count

    @property
    def byte_count(self) -> int:
        """Memory of the tables."""
        return self._blocks.byte_count + (0 if self._engine_names else self._ours.byte_count)

    def apply(self, event: BlockEvent) -> None:
        """Note what happened. Raises TypeError or OverflowError for tokens that are none."""
        if isinstance(event, Stored):
            self._store(event)
        elif isinstance(event, Removed):
            self._remove(event)
        else:
            self.clear()

    def clear(self) -> None:
        """Nothing is held."""
        self._restart()

    def held_blocks(self, chain: Chain) -> int:
        """How many blocks from the start on are here, on whichever medium; makes at most twice as much of the chain."""
        if chain.block_tokens != self.block_tokens:
            return 0
        held, stride = 0, _FIRST_STRIDE
        while held < chain.full_blocks:
            stop = min(held + stride, chain.full_blocks)
            reached = self._ours.run(chain.reach(stop), held, stop)
            if reached < stop:
                return reached
            held, stride = stop, 2 * stride
        return held

    def recipe(self, seed: str | None, *, pads: bool) -> Recipe | None:
        """How a prompt's blocks are named here; ``None`` before the first event told the size of a block."""
        size = self.block_tokens
        return None if size is None else Recipe(size, seed if self._engine_names else None, pads)

    def _store(self, event: Stored) -> None:
        size = event.block_tokens
        if event.locality == _REMOTE or event.kind not in _WHOLE_PREFIX or size < 1:
            return
        if self._group is None:
            self._group = event.group
        if event.group != self._group:
            return
        if size != self.block_tokens:
            if self.block_tokens is not None and size < self.block_tokens:
                return  # the partial block at a prompt's end (vLLM 0.32.0 v1/core/block_pool.py)
            self.block_tokens = size
            self._restart()
        medium = GPU if event.medium in _GPU_WORDS else OFFLOADED
        if event.adapter is not None and len(self.adapters) < _MOST_ADAPTERS:
            self.adapters.add(event.adapter)
        if self._engine_names:
            for block in event.blocks:
                if self._has_room(block):
                    self._blocks.add(block, medium)
            return
        self._store_contents(event, medium)

    def _store_contents(self, event: Stored, medium: int) -> None:
        size, parent = event.block_tokens, None
        if event.parent is not None:
            parent = self._blocks.word(event.parent)
            if parent is None:  # its beginning was stored before we listened
                self.orphans += len(event.blocks)
                return
        keys = event.keys
        for index, block in enumerate(event.blocks):
            tokens = event.token_ids[index * size : (index + 1) * size]
            if len(tokens) != size or not self._has_room(block):
                return
            parent = content_hash(parent, tokens, keys[index] if keys is not None and index < len(keys) else ())
            self._ours.add(parent, GPU)
            self._blocks.add(block, medium, parent)

    def _has_room(self, block: int) -> bool:
        if self._blocks.count < self._limit or self._blocks.bits(block):
            return True
        self.overflowed += 1
        return False

    def _remove(self, event: Removed) -> None:
        if event.locality == _REMOTE or event.group != self._group:
            return
        medium = GPU if event.medium in _GPU_WORDS else OFFLOADED
        for block in event.blocks:
            ours = None if self._engine_names else self._blocks.word(block)
            if not self._blocks.take(block, medium) and ours is not None:
                self._ours.take(ours, GPU)
