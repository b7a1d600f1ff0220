"""What a cache of fetched files may keep, and for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gateway.media.kept_files import KeptFiles, lifetime_s

KEY = ("acme", "http://pictures.example/a.png")


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({}, 0.0),
        ({"Cache-Control": "max-age=60"}, 60.0),
        ({"Cache-Control": "public, MAX-AGE = 60"}, 60.0),
        ({"Cache-Control": 'max-age="60"'}, 60.0),
        ({"Cache-Control": "max-age=60, s-maxage=10"}, 10.0),
        ({"Cache-Control": "max-age=60", "Age": "45"}, 15.0),
        ({"Cache-Control": "max-age=60", "Age": "61"}, 0.0),
        ({"Cache-Control": "max-age=60", "Age": "-5"}, 60.0),
        ({"Cache-Control": "max-age=soon"}, 0.0),
        ({"Cache-Control": "max-age=-1"}, 0.0),
        ({"Cache-Control": "max-age=99999999999999999999"}, 9999999999.0),
        ({"Cache-Control": "no-cache, max-age=60"}, 0.0),
        ({"Cache-Control": "no-store"}, None),
        ({"Cache-Control": "private, max-age=60"}, None),
        ({"Cache-Control": "max-age=60", "Vary": "*"}, None),
        ({"Cache-Control": "max-age=60", "Vary": "Accept"}, 60.0),
        ({"Expires": "Sun, 06 Nov 1994 08:50:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 60.0),
        ({"Expires": "Sun, 06 Nov 1994 08:50:37 GMT"}, 0.0),
        ({"Expires": "0", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"Expires": "Sun, 06 Nov 1994 08:50:37 -0000", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
    ],
)
def test_a_lifetime_is_what_the_origin_says(headers: dict[str, str], expected_s: float | None) -> None:
    assert lifetime_s(CIMultiDict(headers)) == expected_s


@given(st.dictionaries(st.sampled_from(["Cache-Control", "Age", "Expires", "Date", "Vary"]), st.text(max_size=40)))
def test_any_headers_give_a_lifetime_or_none(headers: dict[str, str]) -> None:
    lifetime = lifetime_s(CIMultiDict(headers))
    assert lifetime is None or lifetime >= 0


def test_a_file_is_fresh_for_its_lifetime_and_no_longer_than_allowed() -> None:
    files = KeptFiles(1_000, max_age_s=30)
    files.put(KEY, b"x", CIMultiDict({"Cache-Control": "max-age=60"}), now_s=100)
    kept = files.get(KEY)
    assert kept is not None
    assert kept.is_fresh(129.9)
    assert not kept.is_fresh(130)


def test_without_lifetime_and_validator_nothing_is_kept() -> None:
    files = KeptFiles(1_000, max_age_s=30)
    files.put(KEY, b"x", CIMultiDict(), now_s=0)
    assert files.get(KEY) is None
    files.put(KEY, b"x", CIMultiDict({"ETag": '"1"', "Last-Modified": "yesterday"}), now_s=0)
    kept = files.get(KEY)
    assert kept is not None
    assert not kept.is_fresh(0)
    assert kept.conditions() == {"If-None-Match": '"1"', "If-Modified-Since": "yesterday"}


def test_a_file_that_may_not_be_kept_takes_the_older_one_along() -> None:
    files = KeptFiles(1_000, max_age_s=30)
    files.put(KEY, b"old", CIMultiDict({"ETag": '"1"'}), now_s=0)
    files.put(KEY, b"new", CIMultiDict({"Cache-Control": "no-store"}), now_s=0)
    assert files.get(KEY) is None
    assert files.held_bytes == 0


def test_an_unchanged_file_begins_anew_with_the_new_headers() -> None:
    files = KeptFiles(1_000, max_age_s=300)
    files.put(KEY, b"x", CIMultiDict({"ETag": '"1"'}), now_s=0)
    kept = files.get(KEY)
    assert kept is not None
    files.renew(KEY, kept, CIMultiDict({"ETag": '"2"', "Cache-Control": "max-age=10"}), now_s=50)
    renewed = files.get(KEY)
    assert renewed is not None
    assert (renewed.file, renewed.etag, renewed.fresh_until_s) == (b"x", '"2"', 60)
    files.renew(KEY, kept, CIMultiDict({"Cache-Control": "max-age=99"}), now_s=50)
    assert files.get(KEY) is renewed, "what was replaced meanwhile is not renewed"
    files.renew(KEY, renewed, CIMultiDict({"Cache-Control": "no-store"}), now_s=50)
    assert files.get(KEY) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 400)), max_size=60))
def test_kept_files_stay_within_their_room(puts: list[tuple[int, int]]) -> None:
    files = KeptFiles(1_000, max_age_s=30)
    for name, byte_count in puts:
        files.put(("acme", str(name)), bytes(byte_count), CIMultiDict({"ETag": "x"}), now_s=0)
        held = [kept for n in range(10) if (kept := files.get(("acme", str(n)))) is not None]
        assert files.held_bytes == sum(len(kept.file) for kept in held) <= 1_000
        assert len(files) == len(held)
        assert all(len(kept.file) <= 125 for kept in held)
