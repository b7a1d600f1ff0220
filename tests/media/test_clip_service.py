"""Videos and sounds through real workers: facts, frames, files, caches."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.errors import GatewayError, MediumTooLarge, MediumUndecodable, SourceFailed
from gateway.media.codecs import available_backends
from gateway.media.job import TaskFacts
from gateway.media.service import MediaService
from gateway.media.settings import MIB, MediaSettings, PoolSettings
from gateway.media.shm import HeapBody
from gateway.ports import ClipJob, ClipRef, Clips, ClipScope
from gateway.types import ClipPlan, Container, LongString, MediumKind, Size, Span, TenantId
from tests.media.video.clips import clip

pytestmark = pytest.mark.slow

SCOPE = ClipScope(TenantId("t"), 10**8, None, 20.0)
VIDEO = clip()


class Web:
    """One page, or what is raised instead."""

    def __init__(self) -> None:
        self.page: bytes | GatewayError = VIDEO
        self.calls = 0

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
        self.calls += 1
        if isinstance(self.page, GatewayError):
            raise self.page
        take(len(self.page))
        return self.page


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def done() -> list[TaskFacts]:
    """What workers did."""
    return []


@pytest.fixture
async def service(web: Web, done: list[TaskFacts], until: Any) -> AsyncIterator[MediaService]:
    pool = PoolSettings(workers=1, codec_backend=available_backends()[0], output_bytes=8 * MIB)
    made = MediaService(MediaSettings(b"k" * 32, 7, pool, 16 * MIB), web, on_task=done.append)
    await made.start()
    yield made
    await until(lambda: made.facts().slab_in_use_bytes == 0)
    await made.stop()


def inline(*files: bytes, kind: MediumKind = MediumKind.VIDEO, limit: int = MIB) -> tuple[HeapBody, list[ClipRef]]:
    """A body of data URLs, one beside the other."""
    text, refs = b"", []
    for index, file in enumerate(files):
        url = b"data:application/octet-stream;base64," + b64encode(file)
        source = LongString(Span(len(text), len(text) + len(url)), has_escapes=False)
        refs.append(ClipRef(f"part.{index}", source, kind, False, limit))
        text += url
    return HeapBody(text), refs


async def test_a_video_goes_all_the_way_and_is_made_once(service: MediaService, done: list[TaskFacts]) -> None:
    clips: Clips = service.clips
    body, refs = inline(VIDEO)
    looked = await clips.look(body, refs, SCOPE)
    (facts,) = looked.facts
    assert (facts.byte_count, facts.flaw, facts.probe.size) == (len(VIDEO), None, Size(96, 64))
    plan = ClipPlan(clips.version or "", Size(64, 32), (0, 24, 47), 90)
    job = ClipJob(refs[0], facts, plan)
    (first,) = await clips.prepare(body, looked, [job], SCOPE)
    assert first.data_url.startswith(b"data:video/jpeg;base64,/9j/")
    parts = first.data_url.partition(b",")[2].split(b",")
    assert sum(len(b64decode(part)) for part in parts) == first.file_byte_count
    assert (len(parts), first.frames, first.size) == (3, 3, Size(64, 32))
    again = await clips.look(body, refs, SCOPE)
    assert (await clips.prepare(body, again, [job], SCOPE))[0] is first
    assert [job.operation for job in done] == ["examine", "prepare"]


async def test_a_remote_file_is_inlined_as_what_it_is(service: MediaService, web: Web) -> None:
    refs = [ClipRef(f"part.{n}", "https://example.com/v", MediumKind.VIDEO, False, MIB) for n in range(2)]
    body = HeapBody(b"")
    looked = await service.clips.look(body, refs, SCOPE)
    assert web.calls == 1
    assert all(facts.remote and facts.probe.container is Container.MP4 for facts in looked.facts)
    jobs = [ClipJob(ref, facts, ClipPlan("v")) for ref, facts in zip(refs, looked.facts, strict=True)]
    for made in await service.clips.prepare(body, looked, jobs, SCOPE):
        assert made.data_url == b"data:video/mp4;base64," + b64encode(VIDEO)


async def test_failures_name_the_part_in_words_about_it(service: MediaService, web: Web) -> None:
    body, refs = inline(VIDEO, limit=1000)
    with pytest.raises(MediumTooLarge, match=r"The video has more than 1000 bytes\.") as caught:
        await service.clips.look(body, refs, SCOPE)
    assert caught.value.part == "part.0"
    web.page = SourceFailed("The image did not arrive in time from its address.")
    remote = ClipRef("part.7", "https://example.com/a", MediumKind.AUDIO, False, MIB)
    with pytest.raises(SourceFailed, match="The sound did not arrive"):
        await service.clips.look(body, [remote], SCOPE)
    broken = ClipRef("part.8", "data:audio/wav;base64,A", MediumKind.AUDIO, False, MIB)
    with pytest.raises(MediumUndecodable, match="sound"):
        await service.clips.look(body, [broken], SCOPE)


async def test_remembered_facts_are_judged_by_the_limits_of_who_asks(service: MediaService) -> None:
    body, refs = inline(VIDEO)
    (await service.clips.look(body, refs, SCOPE)).close()
    with pytest.raises(MediumTooLarge):
        await service.clips.look(body, inline(VIDEO, limit=1000)[1], SCOPE)
    with pytest.raises(MediumTooLarge):
        await service.clips.look(body, refs, ClipScope(TenantId("t"), 1000, None, 20.0))


async def test_what_cannot_be_read_is_known_by_its_bytes(service: MediaService) -> None:
    body, refs = inline(b"no video at all" * 9)
    looked = await service.clips.look(body, refs, SCOPE)
    (facts,) = looked.facts
    assert facts.flaw == "medium_unsupported"
    assert facts.byte_count == 135
    looked.close()
