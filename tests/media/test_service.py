from __future__ import annotations

import asyncio
import hashlib
import struct
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import (
    BodyMemoryExhausted,
    GatewayError,
    ImageTooLarge,
    ImageWorkerLost,
    InvalidRequest,
    SourceFailed,
    SourceTooLarge,
    Undecodable,
)
from gateway.media.codecs import available_backends
from gateway.media.looked import LookedSources
from gateway.media.process import WORKER_COMMAND
from gateway.media.service import MediaService
from gateway.media.settings import MIB, MediaSettings, PoolSettings
from gateway.media.shm import HeapBody, SlabBody
from gateway.ports import Body, Media, MediaScope, PrepareJob, SourceRef
from gateway.types import Change, ImageFormat, LongString, Size, Span, TenantId

pytestmark = pytest.mark.slow

SCOPE = MediaScope(TenantId("t"), 8 * MIB, 100_000_000, hosts=None, deadline_s=20.0)


class Web:
    """What stands at each address; an error stands there to be raised."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | GatewayError] = {}
        self.calls: list[str] = []

    async def fetch(
        self,
        url: str,
        *,
        tenant: str,
        hosts: tuple[str, ...] | None,
        max_bytes: int,
        deadline_s: float,
        take: Callable[[int], None],
    ) -> bytes:
        self.calls.append(url)
        assert 0 < deadline_s - asyncio.get_running_loop().time() <= SCOPE.deadline_s
        await asyncio.sleep(0)
        page = self.pages[url]
        if isinstance(page, GatewayError):
            raise page
        take(len(page))
        return page


@pytest.fixture
def web() -> Web:
    return Web()


Start = Callable[..., Awaitable[MediaService]]


@pytest.fixture
async def start(kit: Any, web: Web, until: Any) -> AsyncIterator[Start]:
    """Start a service; at the end nothing is left in its slab."""
    services: list[MediaService] = []

    async def start(*, real: bool = False, workers: int = 2, **settings: Any) -> MediaService:
        backend, command = (available_backends()[0], WORKER_COMMAND) if real else ("fake", kit.worker_command)
        pool = PoolSettings(workers=workers, codec_backend=backend, output_bytes=8 * MIB, job_deadline_s=5.0)
        chosen = {"content_key": kit.content_key, "seed": 7, "pool": pool, "slab_bytes": 16 * MIB, **settings}
        service = MediaService(MediaSettings(**chosen), web, on_task=kit.reported.append, command=command)
        services.append(service)
        await service.start()
        return service

    yield start
    for service in services:
        await until(lambda service=service: service.facts().slab_in_use_bytes == 0)
        await service.stop()


def in_slab(service: MediaService, *texts: bytes) -> tuple[SlabBody, list[SourceRef]]:
    """A body in the slab that consists of these source strings."""
    whole = b'"'.join((b"", *texts, b""))
    extent = service.slab.take(len(whole))
    assert extent is not None
    extent.view[:] = whole
    body, refs, at = SlabBody(extent, len(whole)), [], extent.offset + 1
    for number, text in enumerate(texts):
        refs.append(SourceRef(f"part.{number}", LongString(Span(at, at + len(text)), b"\\" in text)))
        at += len(text) + 1
    return body, refs


def png(width: int, height: int) -> bytes:
    """A real file: a red rectangle."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + b"\xdc\x1e\x1e" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


async def test_a_real_picture_goes_all_the_way(start: Any, kit: Any) -> None:
    service: MediaService = await start(real=True)
    media: Media = service
    text = b"data:image/png;base64," + b64encode(png(64, 48))
    body, refs = in_slab(service, text, text.replace(b"data:image/png", b"DATA:"), text.partition(b",")[2])
    looked = await media.look(body, refs, SCOPE)
    first, second, third = looked.facts
    assert [each.bare_base64 for each in looked.facts] == [False, False, True]
    assert (third.canonical, third.content) == (False, first.content)
    assert (first.probe.raster, first.canonical, second.canonical) == (Size(64, 48), True, False)
    assert (first.content, first.placement) == (second.content, second.placement)
    plan = replace(kit.plan(target=Size(32, 32)), version=media.plan_version)
    jobs = [PrepareJob(ref, facts, plan) for ref, facts in zip(refs, looked.facts, strict=True)]
    results = await media.prepare(body, looked, jobs, SCOPE)
    assert results[0].prepared is results[1].prepared
    assert (results[0].prepared.size, results[0].prepared.format) == (Size(32, 32), ImageFormat.PNG)
    assert results[0].prepared.data_url.startswith(b"data:image/png;base64,iVBORw0KGgo")
    assert sum(fact.operation == "prepare" for fact in kit.reported) == 1
    assert media.peek(SCOPE, first, plan)
    body.close()
    looked.close()


async def test_known_images_cost_no_worker_and_duplicates_one(start: Any, kit: Any) -> None:
    service: MediaService = await start()
    text, other = kit.image(number=1), kit.image(number=2)
    body, refs = in_slab(service, text, other, text)
    looked = await service.look(body, refs, SCOPE)
    assert len(kit.reported) == 2
    assert looked.facts[0] is looked.facts[2]
    heap = HeapBody(text)
    again = await service.look(heap, [SourceRef("x", LongString(Span(0, len(text)), has_escapes=False))], SCOPE)
    assert (again.facts[0], len(kit.reported)) == (looked.facts[0], 2)
    stranger = replace(SCOPE, tenant=TenantId("stranger"))
    await service.look(body, refs[:1], stranger)
    assert len(kit.reported) == 3
    body.close()


async def test_known_images_are_judged_by_the_limits_of_who_asks(start: Any, kit: Any) -> None:
    service: MediaService = await start()
    body, refs = in_slab(service, kit.image(size=[100, 100]))
    await service.look(body, refs, SCOPE)
    for narrow in (replace(SCOPE, max_input_pixels=9_999), replace(SCOPE, max_image_bytes=5)):
        with pytest.raises(ImageTooLarge) as refused:
            await service.look(body, refs, narrow)
        assert refused.value.part == "part.0"
    body.close()


@pytest.mark.parametrize("source", ["file:///etc/passwd", "../x.png", ""])
async def test_what_is_not_an_image_source_is_refused_by_name(start: Any, source: str) -> None:
    service = await start()
    with pytest.raises(InvalidRequest) as refused:
        await service.look(HeapBody(b""), [SourceRef("messages.1.content.0", source)], SCOPE)
    assert refused.value.part == "messages.1.content.0"


async def test_of_several_bad_images_one_is_named_and_the_rest_let_go(start: Any, kit: Any) -> None:
    service: MediaService = await start(workers=1)
    texts = [kit.image(n=1), kit.image(at="probe", do="bad"), kit.image(at="probe", do="bad", n=2), kit.image(n=3)]
    body, refs = in_slab(service, *texts)
    with pytest.raises(Undecodable) as refused:
        await service.look(body, refs, SCOPE)
    assert refused.value.part == "part.1"
    body.close()


async def test_a_remote_image_is_known_by_its_bytes_never_by_its_address(start: Any, kit: Any, web: Web) -> None:
    service: MediaService = await start(real=True)
    url = "http://host/x.png"
    web.pages[url] = png(64, 48)
    body: Body = HeapBody(b"")
    refs = [SourceRef("a", url), SourceRef("b", url)]
    looked = await service.look(body, refs, SCOPE)
    assert web.calls == [url]
    assert (looked.facts[0].remote, looked.facts[0].canonical, looked.facts[0].probe.raster) == (
        True,
        False,
        Size(64, 48),
    )
    plan = kit.plan(Change.REMOTE)
    (result,) = await service.prepare(
        body, looked, [PrepareJob(refs[1], looked.facts[1], plan, wants_sha256=True)], SCOPE
    )
    assert result.prepared.data_url == b"data:image/png;base64," + b64encode(png(64, 48))
    assert result.prepared.file_sha256 == hashlib.sha256(png(64, 48)).digest()
    # What a backend was believed to hold may be asked for later: the fetched file stays until it is let go.
    assert isinstance(looked, LookedSources)
    assert set(looked.files) == {"a", "b"}
    await service.prepare(body, looked, [PrepareJob(refs[0], looked.facts[0], kit.plan(Change.RESIZED))], SCOPE)
    looked.drop_files()
    assert looked.files == {}
    looked.close()
    web.pages[url] = png(30, 20)
    changed = await service.look(body, refs[:1], SCOPE)
    assert changed.facts[0].probe.raster == Size(30, 20)
    inline = b"data:image/png;base64," + b64encode(png(30, 20))
    held, inline_refs = in_slab(service, inline)
    assert (await service.look(held, inline_refs, SCOPE)).facts[0].placement == changed.facts[0].placement
    held.close()


async def test_a_failed_fetch_names_its_part(start: Any, web: Web) -> None:
    service = await start()
    web.pages["http://host/gone"] = SourceFailed("It answered 404.")
    with pytest.raises(SourceFailed) as refused:
        await service.look(
            HeapBody(b""), [SourceRef("a", "http://host/gone"), SourceRef("b", "http://host/gone")], SCOPE
        )
    assert refused.value.part == "a"


async def test_remote_images_of_one_request_take_no_more_than_a_large_body(start: Any, kit: Any, web: Web) -> None:
    service: MediaService = await start()
    room = service.slab.byte_count // 8
    scope = replace(SCOPE, max_image_bytes=room // 2)
    file = b'{"n": 1}'.ljust(room // 2 - 10)
    refs = [SourceRef(name, f"http://host/{name}") for name in "abc"]
    web.pages = {str(ref.source): file for ref in refs}
    with pytest.raises(SourceTooLarge, match="together"):
        await service.look(HeapBody(b""), refs, scope)
    for _ in range(20):  # nothing is left of the others: not of a refused request, nor of one that was looked at
        (await service.look(HeapBody(b""), refs[:2], scope)).close()


async def test_prepared_images_are_cached_by_content_and_plan(start: Any, kit: Any) -> None:
    service: MediaService = await start()
    body, refs = in_slab(service, kit.image(n=1))
    looked = await service.look(body, refs, SCOPE)

    async def make(plan: Any, *, wants_sha256: bool = False, scope: MediaScope = SCOPE) -> Any:
        job = PrepareJob(refs[0], looked.facts[0], plan, wants_sha256)
        return (await service.prepare(body, looked, [job], scope))[0]

    small, large = kit.plan(), kit.plan(target=Size(64, 64))
    assert not service.peek(SCOPE, looked.facts[0], small)
    assert not (await make(small)).from_cache
    assert (await make(small)).from_cache
    assert not (await make(large)).from_cache
    hashed = await make(small, wants_sha256=True)
    assert not hashed.from_cache
    assert hashed.prepared.file_sha256 is not None
    assert (await make(small, wants_sha256=True)).from_cache
    assert not (await make(small, scope=replace(SCOPE, tenant=TenantId("stranger")))).from_cache
    assert service.facts().prepared_entries == 3
    body.close()


async def test_tenants_share_prepared_images_only_when_told_to(start: Any, kit: Any) -> None:
    service: MediaService = await start(share_between_tenants=True)
    body, refs = in_slab(service, kit.image(n=1))
    looked = await service.look(body, refs, SCOPE)
    job = PrepareJob(refs[0], looked.facts[0], kit.plan())
    await service.prepare(body, looked, [job], SCOPE)
    assert (await service.prepare(body, looked, [job], replace(SCOPE, tenant=TenantId("other"))))[0].from_cache
    body.close()


async def test_a_request_that_leaves_takes_nothing_from_one_that_waits_for_the_same_image(
    start: Any, kit: Any, until: Any
) -> None:
    service: MediaService = await start(workers=1)
    text = kit.image(at="probe", do="sleep", value=0.2)
    ours, our_refs = in_slab(service, text)
    theirs, their_refs = in_slab(service, text)
    first = asyncio.create_task(service.look(ours, our_refs, SCOPE))
    await until(lambda: service.facts().pool.busy == 1)
    second = asyncio.create_task(service.look(theirs, their_refs, SCOPE))
    await asyncio.sleep(0)
    first.cancel()
    await until(first.done)
    ours.close()
    assert (await second).facts[0].probe.raster == Size(64, 48)
    theirs.close()
    assert len(kit.reported) == 1


async def test_poison_fails_at_once_in_both_stages(start: Any, kit: Any) -> None:
    service: MediaService = await start(workers=1)
    body, refs = in_slab(service, kit.image(at="probe", do="kill"), kit.image(at="render", do="kill"))
    for _ in range(3):
        with pytest.raises(ImageWorkerLost) as lost:
            await service.look(body, refs[:1], SCOPE)
        assert lost.value.part == "part.0"
    looked = await service.look(body, refs[1:], SCOPE)
    for _ in range(3):
        with pytest.raises(ImageWorkerLost):
            await service.prepare(body, looked, [PrepareJob(refs[1], looked.facts[0], kit.plan())], SCOPE)
    assert service.facts().pool.restarts == {"crash": 4}
    body.close()


async def test_a_full_slab_is_an_overload_not_a_crash(start: Any, kit: Any) -> None:
    service: MediaService = await start(slab_bytes=64 * 1024)
    hog = service.slab.take(1)
    assert hog is not None
    text = kit.image(n=1)
    refs = [SourceRef("a", LongString(Span(0, len(text)), has_escapes=False))]
    with pytest.raises(BodyMemoryExhausted):
        await service.look(HeapBody(text), refs, SCOPE)
    hog.close()
    assert len((await service.look(HeapBody(text), refs, SCOPE)).facts) == 1


async def test_a_request_of_twenty_does_not_hold_up_a_request_of_one(start: Any, kit: Any, until: Any) -> None:
    service: MediaService = await start(workers=1)
    many = [kit.image(n=n, at="probe", do="sleep", value=0.02) for n in range(20)]
    big, big_refs = in_slab(service, *many)
    small, small_refs = in_slab(service, kit.image(n=99))
    first = asyncio.create_task(service.look(big, big_refs, SCOPE))
    await until(lambda: service.facts().pool.queued >= 10)
    await service.look(small, small_refs, SCOPE)
    assert service.facts().pool.queued >= 10
    await first
    big.close()
    small.close()


async def test_a_stopped_service_is_not_alive(start: Any) -> None:
    service = await start()
    assert service.alive
    await service.stop()
    assert not service.alive
