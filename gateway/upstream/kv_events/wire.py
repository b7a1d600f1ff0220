"""From a message's payload to events: vLLM's and SGLang's form (maps), and vLLM's older one (arrays).

Sources: vLLM 0.32.0 distributed/kv_events.py, SGLang 0.5.23. Decided here: what is no event. Not decided here: what an
event does (`routing.blocks.index`). Members that nobody needs are not even built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.routing.blocks.chain import Key
from gateway.routing.blocks.index import BlockEvent, Cleared, Removed, Stored, block_number

_Name = int | bytes
_OTHER = "other"


class NoBatch(ValueError):
    """A payload that is no batch of events."""


class _Batch(msgspec.Struct, array_like=True, gc=False):
    at_s: float
    events: list[msgspec.Raw]
    rank: int | None = None


class _Stored(msgspec.Struct, tag="BlockStored", gc=False):
    block_hashes: list[_Name]
    token_ids: msgspec.Raw
    block_size: int
    parent_block_hash: _Name | None = None
    medium: str | None = None
    lora_name: str | None = None
    cache_salt: str | None = None
    extra_keys: list[list[Any] | None] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    locality: str | None = None


class _Removed(msgspec.Struct, tag="BlockRemoved", gc=False):
    block_hashes: list[_Name]
    medium: str | None = None
    group_idx: int | None = None
    locality: str | None = None


class _Cleared(msgspec.Struct, tag="AllBlocksCleared", gc=False):
    pass


class _OldStored(msgspec.Struct, tag="BlockStored", array_like=True, gc=False):
    block_hashes: list[_Name]
    parent_block_hash: _Name | None
    token_ids: msgspec.Raw
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: list[list[Any] | None] | None = None


class _OldRemoved(msgspec.Struct, tag="BlockRemoved", array_like=True, gc=False):
    block_hashes: list[_Name]
    medium: str | None = None


class _OldCleared(msgspec.Struct, tag="AllBlocksCleared", array_like=True, gc=False):
    pass


_BATCH = msgspec.msgpack.Decoder(_Batch)
_MAP = msgspec.msgpack.Decoder(_Stored | _Removed | _Cleared)
_ARRAY = msgspec.msgpack.Decoder(_OldStored | _OldRemoved | _OldCleared)
_TOKENS = msgspec.msgpack.Decoder(list[int])


@dataclass(frozen=True, slots=True)
class Batch:
    """What one message told: when its publisher made it (its own clock), what happened, on which data-parallel rank."""

    at_s: float
    events: Sequence[BlockEvent]
    rank: int


def read_batch(payload: bytes, *, with_tokens: bool) -> Batch:
    """Read a payload; tokens and keys only where blocks are named by them. Raises `NoBatch`."""
    try:
        batch = _BATCH.decode(payload)
        events = [_event(raw, with_tokens=with_tokens) for raw in batch.events]
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise NoBatch(str(error)) from None
    return Batch(batch.at_s, events, batch.rank or 0)


def _event(raw: msgspec.Raw, *, with_tokens: bool) -> BlockEvent:
    first = memoryview(raw)[0]
    is_map = 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)
    event = (_MAP if is_map else _ARRAY).decode(raw)
    if isinstance(event, _Stored | _OldStored):
        return _stored(event, with_tokens=with_tokens)
    if isinstance(event, _Removed):
        return Removed(
            [block_number(name) for name in event.block_hashes], event.medium, event.group_idx, event.locality
        )
    if isinstance(event, _OldRemoved):
        return Removed([block_number(name) for name in event.block_hashes], event.medium)
    return Cleared()


def _stored(event: _Stored | _OldStored, *, with_tokens: bool) -> Stored:
    parent = event.parent_block_hash
    group, kind, locality = (
        (event.group_idx, event.kv_cache_spec_kind, event.locality) if isinstance(event, _Stored) else (None,) * 3
    )
    return Stored(
        [block_number(name) for name in event.block_hashes],
        None if parent is None else block_number(parent),
        _TOKENS.decode(event.token_ids) if with_tokens else (),
        event.block_size,
        _keys(event) if with_tokens else None,
        event.medium,
        group,
        kind,
        locality,
        event.lora_name,
    )


def _keys(event: _Stored | _OldStored) -> list[list[Key]]:
    """Each block's keys, in the order in which a request's own are made: adapter, images, salt."""
    count = len(event.block_hashes)
    if event.extra_keys is not None:
        if len(event.extra_keys) != count:
            raise NoBatch("extra_keys of another number of blocks")
        return [[_key(key) for key in entry or ()] for entry in event.extra_keys]
    keys: list[list[Key]] = [[] if event.lora_name is None else [event.lora_name] for _ in range(count)]
    salt = event.cache_salt if isinstance(event, _Stored) else None
    if salt and event.parent_block_hash is None and keys:
        keys[0].append(salt)
    return keys


def _key(raw: object) -> Key:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str) and isinstance(raw[1], int):
        return raw[0], raw[1]
    return _OTHER  # a digest of embeddings, say: no request of ours has it
