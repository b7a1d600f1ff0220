from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.media.second_tier import opened, sealed, tier_key
from gateway.types import ImageFormat, Prepared, Size

SECRET = b"s" * 32
KEY = tier_key(("tenant", b"content"), secret=SECRET)
PICTURE = Prepared(b"data:image/png;base64,AAAA", Size(32, 64), ImageFormat.PNG, 3, b"h" * 32)

pictures = st.builds(
    Prepared,
    st.binary(max_size=200),
    st.builds(Size, st.integers(1, 9999), st.integers(1, 9999)),
    st.sampled_from(ImageFormat),
    st.integers(0, 1 << 30),
    st.none() | st.binary(min_size=32, max_size=32),
)


@given(pictures)
def test_what_was_sealed_is_opened_as_it_was(picture: Prepared) -> None:
    assert opened(sealed(picture, KEY, secret=SECRET), KEY, secret=SECRET) == picture


@given(st.binary(max_size=300))
def test_what_was_never_sealed_is_nothing(value: bytes) -> None:
    assert opened(value, KEY, secret=SECRET) is None


@given(st.data())
def test_a_changed_or_shortened_value_is_nothing(data: st.DataObject) -> None:
    value = bytearray(sealed(PICTURE, KEY, secret=SECRET))
    at = data.draw(st.integers(0, len(value) - 1))
    assert opened(bytes(value[:at]), KEY, secret=SECRET) is None
    value[at] ^= data.draw(st.integers(1, 255))
    assert opened(bytes(value), KEY, secret=SECRET) is None


def test_a_value_opens_under_its_own_key_and_secret_alone() -> None:
    value = sealed(PICTURE, KEY, secret=SECRET)
    assert opened(value, tier_key(("other", b"content"), secret=SECRET), secret=SECRET) is None
    assert opened(value, KEY, secret=b"o" * 32) is None


def test_a_key_tells_nothing_and_belongs_to_its_secret() -> None:
    assert len(KEY) == 32
    assert tier_key(("tenant", b"content"), secret=b"o" * 32) != KEY
    assert tier_key(("tenant", b"another"), secret=SECRET) != KEY
    assert tier_key(("tenant", b"content"), secret=SECRET) == KEY
