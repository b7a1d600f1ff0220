"""A second place for prepared images, behind the memory of one process: what its keys and values look like.

Decided here: the port, and that whoever keeps the values is believed nothing. A key is a keyed digest over everything
the picture depends on, its tenant included, so it names nobody and can be guessed by nobody; a value is sealed with
a keyed digest over key and content, so a store that mixes up, alters or invents entries is found out and the picture
made anew. Both keys come from the deployment's secret: replicas that share it share the entries. Not decided here:
where values are kept and for how long (``state.redis_cache``), and when they are asked for (``preparing``).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import msgspec

from gateway.media.digest import keyed_digest
from gateway.types import ImageFormat, Prepared, Size

_SEAL_BYTES = 32


class SecondTier(Protocol):
    """Somewhere to keep values. It has a deadline of its own and never fails: what it cannot do did not happen."""

    async def get(self, key: bytes) -> bytes | None: ...
    def put(self, key: bytes, value: bytes) -> None:
        """Keep it, at some later moment or never."""
        ...


class _Head(msgspec.Struct, frozen=True, array_like=True):
    width: int
    height: int
    format: ImageFormat
    file_byte_count: int
    file_sha256: bytes | None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Head)


def tier_key(identity: Hashable, *, secret: bytes) -> bytes:
    """32 bytes for ``identity``, whose ``repr`` tells it whole and is the same in every process."""
    return keyed_digest("second tier key", (repr(identity).encode(),), key=secret)


def sealed(prepared: Prepared, key: bytes, *, secret: bytes) -> bytes:
    """A prepared image as bytes that only holders of ``secret`` can have made, for this key alone."""
    head = _encoder.encode(
        _Head(
            prepared.size.width,
            prepared.size.height,
            prepared.format,
            prepared.file_byte_count,
            prepared.file_sha256,
        )
    )
    seal = keyed_digest("second tier value", (key, head, prepared.data_url), key=secret)
    return b"".join((seal, len(head).to_bytes(2, "big"), head, prepared.data_url))


def opened(value: bytes, key: bytes, *, secret: bytes) -> Prepared | None:
    """The prepared image, or ``None`` for anything but what was sealed under this key."""
    start = _SEAL_BYTES + 2
    stop = start + int.from_bytes(value[_SEAL_BYTES:start], "big")
    head, data_url = value[start:stop], value[stop:]
    if value[:_SEAL_BYTES] != keyed_digest("second tier value", (key, head, data_url), key=secret):
        return None
    fields = _decoder.decode(head)
    size = Size(fields.width, fields.height)
    return Prepared(data_url, size, fields.format, fields.file_byte_count, fields.file_sha256)
