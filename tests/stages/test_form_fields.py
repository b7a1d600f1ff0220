from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import InvalidRequest
from gateway.stages.form_fields import FormFields, boundary_of


def part(head: bytes, value: bytes) -> bytes:
    return b"--b\r\n" + head + b"\r\n\r\n" + value + b"\r\n"


def field(name: bytes, value: bytes) -> bytes:
    return part(b'Content-Disposition: form-data; name="' + name + b'"', value)


FILE = part(b'content-disposition: form-data; name="file"; filename="a \\"name=model; .wav"\r\nContent-Type: audio/wav',
            b'RIFF\r\n--\r\nname="model"\r\n\r\nother\r\n\x00')  # fmt: skip
END = b"--b--\r\n"


def read(body: bytes, *cuts: int) -> FormFields:
    fields = FormFields(b"b")
    marks = [0, *sorted(cuts), len(body)]
    for start, stop in pairwise(marks):
        fields.feed(body[start:stop])
    return fields


@given(cuts=st.lists(st.integers(0, 400), max_size=6))
def test_the_model_is_read_however_the_bytes_are_cut(cuts: list[int]) -> None:
    body = b"preamble\r\n" + FILE + field(b"models", b"no") + field(b"model", b"ears") + field(b"x", b"") + END + b"--b"
    fields = read(body, *[min(cut, len(body)) for cut in cuts])
    assert fields.model == b"ears"
    assert body[fields.value_at :].startswith(b"ears\r\n")


def test_the_model_stays_as_read_wherever_one_cut_falls() -> None:
    body = field(b"model", b"ears") + FILE + END
    found = {(fields.model, fields.value_at) for cut in range(len(body)) for fields in [read(body, cut)]}
    assert found == {(b"ears", body.index(b"ears"))}


@given(cuts=st.lists(st.integers(0, 400), max_size=6))
def test_a_second_model_is_refused_wherever_it_stands(cuts: list[int]) -> None:
    body = field(b"model", b"ears") + FILE + field(b"model", b"secret") + END
    with pytest.raises(InvalidRequest, match="twice"):
        read(body, *[min(cut, len(body)) for cut in cuts])


@pytest.mark.parametrize(
    "disposition",
    [
        b"form-data; name*=utf-8''model",
        b'form-data; name*0="mo"; name*1="del"',
        b'form-data; name="mo\\del"',
        b'form-data; name="file"; name="model"',
        b'form-data; name="file"; filename="a"; NAME*=utf-8\'\'model',
        b'form-data;\r\n name="model"',
        b'form-data; name="file"\r\nContent-Disposition: form-data; name="model"',
        b"attachment",
        b'form-data; filename="a"; name="model"',
    ],
)
def test_a_name_that_could_be_read_in_two_ways_is_refused(disposition: bytes) -> None:
    with pytest.raises(InvalidRequest, match="plainly"):
        read(field(b"model", b"ears") + part(b"Content-Disposition: " + disposition, b"secret") + END)


def test_what_is_no_form_names_nothing() -> None:
    assert read(b"model=secret").model is None
    assert read(END + field(b"model", b"behind the end")).model is None
    assert read(field(b"model", b"") + END).model == b""
    assert read(part(b"Content-Disposition: form-data; name=model", b"ears") + END).model == b"ears"


@pytest.mark.parametrize(
    "body",
    [
        field(b"model", b"m" * 300) + END,
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + b"m" * 300,
        b"--b\r\nX: " + b"x" * 9000,
        b"--b \r\n",
    ],
)
def test_what_is_too_long_or_broken_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(body)


def test_a_form_has_one_boundary() -> None:
    assert boundary_of("multipart/form-data; boundary=----WebKitFormBoundaryA1") == b"----WebKitFormBoundaryA1"
    assert boundary_of('multipart/form-data;charset=utf-8; BOUNDARY="a b"') == b"a b"
    for odd in ("", "; boundary=a; boundary=b", "; boundary*=utf-8''a", "; boundary*0=a; boundary=b", "; boundary="):
        with pytest.raises(InvalidRequest):
            boundary_of("multipart/form-data" + odd)
