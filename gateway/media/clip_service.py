"""The Clips port: videos and sounds, from their sources to facts, from plans to data URLs. Neighbour of ``service``.

Decided here: what is asked of fetcher, pool and caches, and how work is keyed and scoped by tenant. Not decided here:
what may be fetched, how long anything may be, what is taken out of a video (policy and plan). A re-sent clip costs a
hash; frames are kept by content and plan, files never: they are as large as what they are made of.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from gateway.errors import GatewayBug, GatewayError, MediumTooLarge
from gateway.media.cache import SingleFlight, Work, is_about_the_image
from gateway.media.clip_work import about_clip
from gateway.media.gathering import all_of
from gateway.media.job import ClipOutput, Task
from gateway.media.messages import ExamineClip, ExaminedClip, PrepareClip
from gateway.media.placing import Placer, Source, address_of, head_of
from gateway.media.pool import Pool
from gateway.media.recent import Recent
from gateway.media.remote import RemoteFiles
from gateway.media.room import Room, Share
from gateway.media.settings import MediaSettings
from gateway.media.video import installed_version
from gateway.ports import Body, ClipJob, ClipRef, ClipScope, LookedClips
from gateway.types import (
    ClipFacts,
    ContentDigest,
    PlacementDigest,
    PreparedClip,
    Size,
)

_REMOTE = re.compile(rb"\s*https?:", re.IGNORECASE)
_FACTS_ENTRIES = 8192
# Frames may take this share of what prepared images may, beside them.
_FRAMES_SHARE = 4
# What is left of a job's deadline for reading the source and writing the frames out.
_DECODE_SHARE = 0.8
# Turns in the pool's line are numbered apart from those of image requests.
_FIRST_FLOW = 1 << 40


@dataclass(frozen=True, slots=True)
class ClipTools:
    """What the image pipeline shares: its workers, its memory, its fetcher."""

    pool: Pool
    placer: Placer
    remote: RemoteFiles
    room: Room


@dataclass(slots=True)
class LookedFiles:
    """``ports.LookedClips``. ``files`` are the bytes of remote clips by name, kept until they are prepared."""

    facts: tuple[ClipFacts, ...]
    share: Share
    flow: int
    files: dict[str, bytes] = field(default_factory=dict)

    def close(self) -> None:
        self.files.clear()
        self.share.close()


class ClipService:
    """``ports.Clips`` over the image pool. It has no life of its own: it works while ``MediaService`` does."""

    def __init__(self, settings: MediaSettings, tools: ClipTools) -> None:
        self._settings = settings
        self._tools = tools
        self._facts: Recent[ClipFacts] = Recent(_FACTS_ENTRIES, lambda _: 1)
        frames_bytes = settings.prepared_cache_bytes // _FRAMES_SHARE
        self._frames: Recent[PreparedClip] = Recent(frames_bytes, lambda clip: len(clip.data_url))
        self._examining: SingleFlight[Hashable, ClipFacts] = SingleFlight(is_about_the_image)
        self._preparing: SingleFlight[Hashable, PreparedClip] = SingleFlight(is_about_the_image)
        self._flows = count(_FIRST_FLOW)
        self._version = installed_version()

    @property
    def version(self) -> str | None:
        return self._version

    # --- look -------------------------------------------------------------------------------------------------------

    async def look(self, body: Body, refs: Sequence[ClipRef], scope: ClipScope) -> LookedClips:
        limit_bytes = max([self._settings.slab_bytes // 8, *(ref.max_bytes for ref in refs)])
        looked = LookedFiles((), self._tools.room.share(limit_bytes), next(self._flows))
        fetches: dict[str, asyncio.Task[bytes]] = {}
        try:
            looked.facts = tuple(await all_of([self._look_at(body, ref, scope, looked, fetches) for ref in refs]))
        except BaseException:
            looked.close()
            raise
        finally:
            for fetching in fetches.values():
                fetching.cancel()
        return looked

    async def _look_at(
        self, body: Body, ref: ClipRef, scope: ClipScope, looked: LookedFiles, fetches: dict[str, asyncio.Task[bytes]]
    ) -> ClipFacts:
        try:
            is_remote = _is_remote(body, ref)
            if is_remote:
                url = address_of(body, ref.source)
                if url not in fetches:
                    fetches[url] = asyncio.create_task(self._fetch(url, ref, scope, looked.share))
                looked.files[ref.name] = file = await asyncio.shield(fetches[url])
                source = self._tools.placer.file(ref.name, file, scope.tenant)
            else:
                source = self._tools.placer.text(body, ref, scope.tenant)
            known = self._facts.get((ref.kind, source.key))
            if known is not None:
                return _judged(known, ref, scope)
            key = (ref.kind, source.key, ref.max_bytes, scope.max_pixels)
            begin = partial(self._begin_examining, source, ref, scope, looked.flow)
            return await self._examining.get(key, begin)
        except GatewayError as error:
            raise about_clip(error, ref.kind, ref.max_bytes).at(ref.name) from None

    async def _fetch(self, url: str, ref: ClipRef, scope: ClipScope, share: Share) -> bytes:
        until_s = asyncio.get_running_loop().time() + scope.deadline_s
        return await self._tools.remote.fetch(
            url,
            tenant=scope.tenant,
            hosts=scope.hosts,
            max_bytes=ref.max_bytes,
            deadline_s=until_s,
            take=share.take,
        )

    def _begin_examining(self, source: Source, ref: ClipRef, scope: ClipScope, flow: int) -> Work[ClipFacts]:
        hold, where = source.place()
        key = self._settings.content_key
        question = ExamineClip(where, ref.kind, ref.is_bare, key, ref.max_bytes, scope.max_pixels)
        task = Task(question, hold, scope.tenant, flow, scope.deadline_s, source.key[1])
        return Work(self._examine(task, (ref.kind, source.key), is_remote=source.key[0] == "file"), hold.close)

    async def _examine(self, task: Task, key: Hashable, *, is_remote: bool) -> ClipFacts:
        answer = await self._tools.pool.run(task)
        if not isinstance(answer, ExaminedClip):
            raise GatewayBug(detail="the pool answered another question")
        placement, content = PlacementDigest(answer.placement), ContentDigest(answer.content)
        facts = ClipFacts(answer.byte_count, placement, content, answer.probe, answer.flaw or None, is_remote)
        self._facts.put(key, facts)
        return facts

    # --- prepare ----------------------------------------------------------------------------------------------------

    async def prepare(
        self, body: Body, looked: LookedClips, jobs: Sequence[ClipJob], scope: ClipScope
    ) -> Sequence[PreparedClip]:
        assert isinstance(looked, LookedFiles)
        made = await all_of([self._make(body, looked, job, scope) for job in jobs])
        looked.close()  # nobody asks for their files again, and an answer may take minutes
        return made

    async def _make(self, body: Body, looked: LookedFiles, job: ClipJob, scope: ClipScope) -> PreparedClip:
        tenant = "" if self._settings.share_between_tenants else scope.tenant
        key = (tenant, job.facts.content, job.plan)
        ready = self._frames.get(key)
        if ready is not None:
            return ready
        try:
            return await self._preparing.get(key, lambda: self._begin_preparing(body, looked, job, scope))
        except GatewayError as error:
            raise about_clip(error, job.ref.kind, job.ref.max_bytes).at(job.ref.name) from None

    def _begin_preparing(self, body: Body, looked: LookedFiles, job: ClipJob, scope: ClipScope) -> Work[PreparedClip]:
        ref, file = job.ref, looked.files.get(job.ref.name)
        placer = self._tools.placer
        hold, where = placer.place(body, ref.source) if file is None else placer.place_file(file)
        decode_s = self._settings.pool.job_deadline_s * _DECODE_SHARE
        question = PrepareClip(where, ref.kind, ref.is_bare, job.plan, job.facts.probe, ref.max_bytes, decode_s)
        task = Task(question, hold, scope.tenant, looked.flow, scope.deadline_s, job.facts.content)
        tenant = "" if self._settings.share_between_tenants else scope.tenant
        return Work(self._prepare(task, job, (tenant, job.facts.content, job.plan)), hold.close)

    async def _prepare(self, task: Task, job: ClipJob, key: Hashable) -> PreparedClip:
        output = await self._tools.pool.run(task)
        if not isinstance(output, ClipOutput):
            raise GatewayBug(detail="the pool answered another question")
        answer = output.answer
        size = Size(answer.width, answer.height)
        prepared = PreparedClip(output.data_url, size, len(job.plan.indices), answer.file_byte_count)
        if not job.plan.keeps_file:
            self._frames.put(key, prepared)
        return prepared


def _judged(facts: ClipFacts, ref: ClipRef, scope: ClipScope) -> ClipFacts:
    """Remembered facts by this scope's limits: they may have been found under wider ones. Raises MediumTooLarge."""
    if facts.byte_count > ref.max_bytes:
        raise MediumTooLarge(f"The medium has {facts.byte_count} bytes; at most {ref.max_bytes} are accepted.")
    size = facts.probe.size
    if size is not None and size.pixels > scope.max_pixels:
        raise MediumTooLarge(f"The video has {size} pixels; at most {scope.max_pixels} are accepted.")
    return facts


def _is_remote(body: Body, ref: ClipRef) -> bool:
    return not ref.is_bare and _REMOTE.match(head_of(body, ref.source)) is not None
