"""Three identities of an image, of three strengths. Pure; the only door to xxhash and blake3.

* look-up: xxh3-128 over the source string (0.055 ms/MB), seeded per deployment and scoped by tenant. An attacker who
  could make two strings collide would only see his own tenant's facts.
* placement: xxh3-128 over the decoded file, so that two spellings of one picture agree on a backend.
* content: keyed BLAKE3 over the decoded file (0.3 ms/MB), the root of every identity that an engine believes. It must
  not be forged: a collision would show one tenant another's picture.

Every input is framed (a name for its use, lengths before the parts), so that a picture followed by other bytes never
equals a picture and a setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import blake3
import xxhash

from gateway.types import ContentDigest, PlacementDigest

_KEY_BYTES = 32


def lookup_digest(source: memoryview | bytes, *, seed: int, scope: str) -> bytes:
    """Identity of a source string (the text between its quotes) within ``scope``: 16 bytes."""
    state = xxhash.xxh3_128(_frame("lookup", scope), seed=seed)
    state.update(source)
    return state.digest()


def placement_digest(data: memoryview | bytes) -> PlacementDigest:
    """Identity of a file for the choice of a backend: 16 bytes, equal on every replica."""
    return PlacementDigest(xxhash.xxh3_128_digest(data))


def content_digest(data: memoryview | bytes, *, key: bytes) -> ContentDigest:
    """Unforgeable identity of a file under the deployment's ``key`` (32 bytes): 32 bytes. Raises ValueError."""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"the identity key must have {_KEY_BYTES} bytes, not {len(key)}")
    return ContentDigest(blake3.blake3(data, key=key).digest())


def keyed_digest(use: str, parts: Iterable[bytes], *, key: bytes) -> bytes:
    """32 bytes that only holders of ``key`` can find, over parts that are told apart by their lengths."""
    state = blake3.blake3(_frame(use), key=key)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    digest: bytes = state.digest()
    return digest


def engine_identity(content: ContentDigest, *, scope: Iterable[str], picture: str, key: bytes) -> str:
    """The id under which an engine may cache the picture made of a file: a UUID in its 32 hexadecimal digits.

    Equal only for one file, ``scope`` (whose pictures it is shared with) and ``picture`` (`ImagePlan.picture`).
    UUID version 8 (RFC 9562 §5.8, 122 bits of our own), so that it also passes where a UUID's form is checked.
    """
    scope = tuple(scope)
    framed = _frame("engine", str(len(scope)), *scope, picture) + content
    digest = blake3.blake3(framed, key=key).digest(length=16)
    return UUID(
        bytes=bytes((*digest[:6], digest[6] & 0x0F | 0x80, digest[7], digest[8] & 0x3F | 0x80, *digest[9:]))
    ).hex


def _frame(use: str, *parts: str) -> bytes:
    encoded = [part.encode("utf-8", "surrogatepass") for part in (use, *parts)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
