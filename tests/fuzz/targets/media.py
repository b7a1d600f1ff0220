"""What images come as: data URLs, addresses, and the headers of every format."""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote_to_bytes, urlsplit

import httpx
from yarl import URL

from gateway.errors import GatewayError
from gateway.media.codecs.probe import HEAD_BYTES, TAIL_BYTES, NeedMore, probe, probe_all
from gateway.media.netguard import is_public, parse_target
from gateway.media.payload import read_text
from gateway.media.sources import canonical_prefix, classify, resolve_head
from gateway.types import Probe
from tests.fuzz import corpus
from tests.fuzz.targets.target import Target, documented

_LIMIT_BYTES = 2048
_MOST_PIXELS = 1 << 64
_FAR_SHARE = 0.05  # of the inputs, since they cost fifty times as much
_PORTS = {"http": 80, "https": 443}


def data_urls(data: bytes) -> None:
    """A source string is decoded as the standard library decodes it, or refused."""
    has_escapes = b"\\" in data
    with contextlib.suppress(GatewayError):
        classify(data)
    with contextlib.suppress(GatewayError):
        resolve_head(data, has_escapes=has_escapes)
    try:
        payload = read_text(memoryview(data), has_escapes=has_escapes, max_image_bytes=_LIMIT_BYTES)
    except GatewayError as error:
        documented(error)
        return
    assert payload.data
    if payload.strict and not has_escapes:
        assert payload.data == base64.b64decode(data[len(payload.prefix) :], validate=True)
    if payload.prefix and not has_escapes and b";base64," not in payload.prefix.lower().replace(b" ", b""):
        text = data[len(payload.prefix) :]
        assert payload.strict or payload.data == unquote_to_bytes(text) or b"base64" in payload.prefix.lower()


def addresses(data: bytes) -> None:
    """The host that is judged is the host that every client would ask: no two readings of one address."""
    try:
        url = data.decode()
    except UnicodeDecodeError:
        return
    try:
        target = parse_target(url)
    except GatewayError as error:
        documented(error)
        return
    asked = target.url
    assert asked.isascii()
    plain, ours, theirs = urlsplit(asked), URL(asked, encoded=True), httpx.URL(asked)
    for host, port in (
        (plain.hostname, plain.port),
        (ours.raw_host, ours.port),
        (theirs.raw_host.decode().strip("[]"), theirs.port),
    ):
        assert host == target.host, (host, target.host)
        assert (port or _PORTS[target.scheme]) == target.port
    if target.address is not None:
        is_public(target.address)


def headers(data: bytes) -> None:
    """A header gives one answer, from the whole file and from its two ends, or asks for more."""
    try:
        seen: Probe | str = probe_all(data)
    except GatewayError as error:
        documented(error)
        seen = error.code
    if isinstance(seen, Probe):
        _plausible(seen)
    with contextlib.suppress(NeedMore):
        assert _but_for_its_end(_from_ends(data, data[-16:])) == _but_for_its_end(seen)
    rng = random.Random(data)
    if rng.random() < _FAR_SHARE:
        _look_from_afar(data, rng.randint(0, len(data)))


def _look_from_afar(data: bytes, split: int) -> None:
    """The same with as much between its halves as makes it longer than what is looked at first."""
    far = data[:split] + bytes(HEAD_BYTES) + data[split:]
    with contextlib.suppress(NeedMore):
        ends = _from_ends(far[:HEAD_BYTES], far[-TAIL_BYTES:], len(far))
        assert _but_for_its_end(ends) == _but_for_its_end(_from_ends(far, far))


def _but_for_its_end(seen: Probe | str) -> Probe | str:
    """An end mark is looked for in the tail alone, before whatever stands behind it."""
    return replace(seen, complete=True) if isinstance(seen, Probe) else seen


def _from_ends(head: bytes, tail: bytes, byte_count: int | None = None) -> Probe | str:
    try:
        return probe(head, tail, len(head) if byte_count is None else byte_count)
    except GatewayError as error:
        return error.code


def _plausible(seen: Probe) -> None:
    assert seen.raster.width > 0
    assert seen.raster.height > 0
    assert seen.raster.pixels < _MOST_PIXELS
    assert 1 <= seen.orientation <= 8
    assert seen.frames >= 1
    assert seen.scans >= 1
    assert 1 <= seen.bits_per_sample <= 64
    assert canonical_prefix(seen).startswith(b"data:image/")


def _images() -> Iterator[bytes]:
    for name, file in corpus.corpus().items():
        if not name.startswith((corpus.VIDEO, corpus.SOUND)):
            yield file


TARGETS = (
    Target(
        "data_urls",
        "sources of images, against the standard library",
        data_urls,
        (
            "gateway.media.sources",
            "gateway.media.payload",
        ),
    ),
    Target(
        "addresses",
        "addresses of images, read as three clients read them",
        addresses,
        ("gateway.media.netguard",),
        largest_bytes=512,
    ),
    Target(
        "headers",
        "headers of every image format, whole and from two ends",
        headers,
        ("gateway.media.codecs.probe",),
        largest_bytes=16384,
        replayed=150,
        seeds=_images,
    ),
)
