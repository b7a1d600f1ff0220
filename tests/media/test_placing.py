from __future__ import annotations

import pytest

from gateway.errors import BodyMemoryExhausted, InvalidRequest
from gateway.media.placing import Placer, address_of, kind_of
from gateway.media.shm import GRANULE_BYTES, HeapBody, Slab, SlabBody
from gateway.media.sources import SourceKind
from gateway.ports import SourceRef
from gateway.types import LongString, Span, TenantId

TEXT = b"data:image/png;base64,AAAA"
TENANT = TenantId("t")


@pytest.fixture
def slab() -> Slab:
    return Slab(4 * GRANULE_BYTES)


def in_slab(slab: Slab, data: bytes) -> tuple[SlabBody, LongString]:
    extent = slab.take(len(data))
    assert extent is not None
    extent.view[:] = data
    return SlabBody(extent, len(data)), LongString(Span(extent.offset, extent.offset + len(data)), has_escapes=False)


def test_bytes_in_the_slab_stay_where_they_are(slab: Slab) -> None:
    body, source = in_slab(slab, TEXT)
    hold, where = Placer(slab, 1).place(body, source)
    assert (where.offset, where.length, where.is_text) == (source.span.start, len(TEXT), True)
    body.close()
    assert slab.in_use_bytes == GRANULE_BYTES
    hold.close()
    assert slab.in_use_bytes == 0


@pytest.mark.parametrize("escapes", [False, True])
def test_bytes_elsewhere_are_copied_and_held_only_by_the_hold(slab: Slab, escapes: bool) -> None:
    body = HeapBody(b'"' + TEXT + b'"')
    hold, where = Placer(slab, 1).place(body, LongString(Span(1, 1 + len(TEXT)), has_escapes=escapes))
    assert bytes(slab.view(where.offset, where.offset + where.length)) == TEXT
    assert where.has_escapes is escapes
    hold.close()
    assert slab.in_use_bytes == 0


def test_short_strings_and_files_are_copied_too(slab: Slab) -> None:
    placer = Placer(slab, 1)
    for hold, where in (placer.place(HeapBody(b""), "data:,x"), placer.place_file(b"file")):
        assert bytes(slab.view(where.offset, where.offset + where.length)) in (b"data:,x", b"file")
        hold.close()
    hold, where = placer.place_file(b"")
    assert (where.length, where.is_text) == (0, False)
    hold.close()


def test_a_full_slab_is_said_so(slab: Slab) -> None:
    with pytest.raises(BodyMemoryExhausted):
        Placer(slab, 1).place_file(b"x" * (5 * GRANULE_BYTES))


def test_the_key_is_the_texts_the_tenants_and_the_deployments(slab: Slab) -> None:
    body, source = in_slab(slab, TEXT)
    ref = SourceRef("a", source)
    placer = Placer(slab, 1)
    key = placer.text(body, ref, TENANT).key
    assert placer.text(HeapBody(b""), SourceRef("b", TEXT.decode()), TENANT).key == key
    assert placer.text(body, ref, TenantId("other")).key != key
    assert Placer(slab, 2).text(body, ref, TENANT).key != key
    assert placer.file("a", TEXT, TENANT).key != key


@pytest.mark.parametrize(
    ("text", "escapes", "kind"),
    [
        (b"data:image/png;base64,AA", False, SourceKind.DATA_URL),
        (b"https:\\/\\/host\\/x", True, SourceKind.REMOTE),
        (b"\\u0064ata:,x", True, SourceKind.DATA_URL),
    ],
)
def test_the_kind_is_seen_through_escapes(text: bytes, escapes: bool, kind: SourceKind) -> None:
    assert kind_of(HeapBody(text), LongString(Span(0, len(text)), escapes)) is kind


def test_an_address_is_read_from_the_body_and_bounded() -> None:
    text = b"https:\\/\\/host\\/x"
    assert address_of(HeapBody(text), LongString(Span(0, len(text)), has_escapes=True)) == "https://host/x"
    assert address_of(HeapBody(b""), " http://host/x\n") == "http://host/x"
    long = b"http://host/" + b"x" * 9_000
    with pytest.raises(InvalidRequest, match="8192"):
        address_of(HeapBody(long), LongString(Span(0, len(long)), has_escapes=False))
    assert kind_of(HeapBody(b""), "http://host/") is SourceKind.REMOTE
