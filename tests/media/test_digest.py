from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.digest import content_digest, engine_identity, keyed_digest, lookup_digest, placement_digest
from gateway.types import ContentDigest

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
FILE = b"\x89PNG file"
CONTENT = content_digest(FILE, key=KEY)


def identity(
    content: ContentDigest = CONTENT, scope: tuple[str, ...] = ("acme",), picture: str = "v1 448x224", key: bytes = KEY
) -> str:
    return engine_identity(content, scope=scope, picture=picture, key=key)


def test_look_up_depends_on_source_seed_and_scope() -> None:
    first = lookup_digest(b"data:...", seed=1, scope="acme")
    assert len(first) == 16
    assert first == lookup_digest(memoryview(b"data:..."), seed=1, scope="acme")
    assert (
        len({first, lookup_digest(b"data:..", seed=1, scope="acme"), lookup_digest(b"data:...", seed=2, scope="acme")})
        == 3
    )
    assert first != lookup_digest(b"data:...", seed=1, scope="acme2")


@given(st.binary(max_size=8), st.text(max_size=4), st.binary(max_size=8), st.text(max_size=4))
def test_scope_and_source_never_run_together(source: bytes, scope: str, other_source: bytes, other_scope: str) -> None:
    same = (source, scope) == (other_source, other_scope)
    assert (
        lookup_digest(source, seed=0, scope=scope) == lookup_digest(other_source, seed=0, scope=other_scope)
    ) is same


def test_placement_is_the_same_everywhere() -> None:
    # xxh3-128 of the empty input, as the specification of XXH3 gives it.
    assert placement_digest(b"").hex() == "99aa06d3014798d86001c324468d497f"
    assert placement_digest(memoryview(FILE)) == placement_digest(FILE) != placement_digest(FILE + b"\0")


def test_content_is_keyed() -> None:
    assert len(CONTENT) == 32
    assert content_digest(memoryview(FILE), key=KEY) == CONTENT
    assert content_digest(FILE, key=OTHER_KEY) != CONTENT
    assert content_digest(FILE + b"tail", key=KEY) != CONTENT
    with pytest.raises(ValueError, match="32 bytes, not 5"):
        content_digest(FILE, key=b"short")


def test_an_engines_identity_depends_on_everything_that_makes_the_picture() -> None:
    others = [
        identity(content_digest(b"other", key=KEY)),
        identity(scope=("acme2",)),
        identity(scope=()),
        identity(scope=("acme", "user")),
        identity(picture="v1 224x448"),
        identity(key=OTHER_KEY),
    ]
    assert identity() == identity()
    assert len({identity(), *others}) == len(others) + 1


def test_parts_of_an_identity_are_framed() -> None:
    assert identity(scope=("a",), picture="bv") != identity(scope=("ab",), picture="v")
    assert identity(scope=("a", "b"), picture="v") != identity(scope=("a",), picture="b")


@given(st.binary(min_size=32, max_size=32), st.text(max_size=10))
def test_an_identity_is_a_uuid_of_version_8(content: bytes, tenant: str) -> None:
    found = identity(ContentDigest(content), scope=(tenant,))
    assert len(found) == 32
    parsed = uuid.UUID(found)
    assert (parsed.version, parsed.variant, parsed.hex) == (8, uuid.RFC_4122, found)


def test_a_keyed_digest_tells_uses_parts_and_keys_apart() -> None:
    key = b"k" * 32
    one = keyed_digest("use", (b"ab", b"c"), key=key)
    assert len(one) == 32
    assert one == keyed_digest("use", iter((b"ab", b"c")), key=key)
    others = [
        keyed_digest("use", (b"a", b"bc"), key=key),
        keyed_digest("use", (b"abc",), key=key),
        keyed_digest("other", (b"ab", b"c"), key=key),
        keyed_digest("use", (b"ab", b"c"), key=b"o" * 32),
    ]
    assert len({one, *others}) == 5
