from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.blocks.index import Cleared, Removed, Stored
from gateway.upstream.kv_events.wire import NoBatch, read_batch
from tests.routing.blocks.recorded import events_of, recording
from tests.upstream.kv_events.publisher import CLEARED, packed, removed, stored


def test_all_that_a_real_vllm_published_is_read() -> None:
    frames = [frame for prompt in recording()["prompts"] for frame in prompt["frames"]]
    frames += [*recording()["evicting"], *recording()["cleared"]]
    read = [event for frame in frames for event in read_batch(base64.b64decode(frame[-1]), with_tokens=True).events]
    expected = events_of(frames)
    assert [type(event) for event in read] == [type(event) for event in expected]
    for event, other in zip(read, expected, strict=True):
        if isinstance(event, Stored) and isinstance(other, Stored):
            assert event == Stored(
                other.blocks, other.parent, other.token_ids, other.block_tokens, other.keys, "GPU", 0, "full_attention"
            )
        else:
            assert event == other


def test_tokens_are_not_even_built_where_nobody_needs_them() -> None:
    (event,) = read_batch(packed(stored([1] * 8)), with_tokens=False).events
    assert isinstance(event, Stored)
    assert (event.token_ids, event.keys, len(event.blocks)) == ((), None, 2)


def _only(event: object, **more: Any) -> object:
    (found,) = read_batch(msgspec.msgpack.encode([1.5, [event]]), with_tokens=True, **more).events
    return found


def test_the_older_form_in_arrays() -> None:
    whole = bytes(range(32))
    old = _only(["BlockStored", [whole], None, [1, 2], 2, None, "GPU"])
    assert old == Stored([int.from_bytes(whole[-8:], "big")], None, [1, 2], 2, [[]], "GPU")
    assert _only(["BlockRemoved", [7]]) == Removed([7])
    assert _only(["AllBlocksCleared"]) == Cleared()


def test_sglangs_salt_and_adapter_stand_beside_the_blocks() -> None:
    first = {"type": "BlockStored", "block_hashes": [-1, 2], "token_ids": [5, 2_000_000], "block_size": 1}
    read = _only(first | {"parent_block_hash": None, "cache_salt": "s", "lora_name": "l", "session_id": "x"})
    assert read == Stored([2**64 - 1, 2], None, [5, 2_000_000], 1, [["l", "s"], ["l"]], adapter="l")
    later = _only(first | {"parent_block_hash": 9, "cache_salt": "s"})
    assert isinstance(later, Stored)
    assert later.keys == [[], []]


def test_rank_and_clock() -> None:
    batch = read_batch(msgspec.msgpack.encode([1.5, [], 3]), with_tokens=True)
    assert (batch.at_s, batch.rank, batch.events) == (1.5, 3, [])
    assert read_batch(msgspec.msgpack.encode([2, [], None]), with_tokens=True).rank == 0


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1.5]),
        msgspec.msgpack.encode([1.5, [{"type": "Unheard"}]]),
        msgspec.msgpack.encode([1.5, [{"type": "BlockRemoved"}]]),
        msgspec.msgpack.encode([1.5, [stored([1] * 4, extra_keys=[])]]),
        msgspec.msgpack.encode([1.5, [stored([1] * 4, token_ids=["x"])]]),
        b"\x92\xcb" + b"\0" * 8 + b"\x91" * 100_000,
    ],
    ids=lambda payload: repr(payload[:12]),
)
def test_what_is_no_batch_is_told(payload: bytes) -> None:
    with pytest.raises(NoBatch):
        read_batch(payload, with_tokens=True)


@given(st.binary(max_size=80), st.integers(0, 200))
def test_no_bytes_do_anything_else(noise: bytes, at: int) -> None:
    good = packed(stored([1] * 8), removed([1] * 8, 0), CLEARED)
    for payload in (noise, good[:at] + noise + good[at + len(noise) :], good[:at]):
        for with_tokens in (True, False):
            try:
                read_batch(payload, with_tokens=with_tokens)
            except NoBatch:
                continue
