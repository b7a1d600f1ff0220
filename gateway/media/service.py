"""The Media port: from the sources of a request to facts, from plans to prepared bytes.

Decided here: what is asked of caches, fetcher and pool to get at facts, in which order, and how that is keyed and
scoped by tenant. Not decided here: what a source is (``sources``), what may be fetched (the fetcher), what becomes of
it (the plan), and how prepared bytes are come by (``preparing``). The loop does two things with an image's bytes here:
hash them where they lie (0.055 ms/MB), and copy them into the slab if they are elsewhere. A request whose images are
all known costs a hash and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from gateway.errors import GatewayBug, GatewayError
from gateway.media.cache import FactsCache, SingleFlight, Work, is_about_the_image
from gateway.media.clip_service import ClipService, ClipTools
from gateway.media.detailing import Detailer, lacks_detail
from gateway.media.gathering import all_of
from gateway.media.job import PoolFacts, Task, TaskFacts
from gateway.media.looked import Asker, Flow, LookedSources
from gateway.media.messages import Examine, Examined
from gateway.media.placing import Placer, Source, address_of, kind_of
from gateway.media.pool import Pool
from gateway.media.preparing import Preparer
from gateway.media.process import WORKER_COMMAND
from gateway.media.remote import RemoteFiles
from gateway.media.room import FETCHED, PREPARED, Room, Share
from gateway.media.second_tier import SecondTier
from gateway.media.settings import MIB, MediaSettings
from gateway.media.shm import Slab
from gateway.media.sources import SourceKind, check_accepted, check_pixels, check_size
from gateway.ports import Body, Looked, MediaScope, PreparedResult, PrepareJob, SourceRef
from gateway.types import ContentDigest, ImagePlan, PlacementDigest, Size, SourceFacts

# Idle slab memory goes back in steps that keep the loop free: 16 MiB take about 1 ms.
_TRIM_PERIOD_S = 2.0
_TRIM_STEP_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class MediaFacts:
    """The pipeline at one moment, for whoever counts."""

    pool: PoolFacts
    slab_in_use_bytes: int
    facts_entries: int
    prepared_entries: int
    prepared_bytes: int
    tier_queries: int = 0
    tier_hits: int = 0


class MediaService:
    """``ports.Media`` over a pool of worker processes. ``await start()`` first; ``slab`` is where bodies belong."""

    def __init__(
        self,
        settings: MediaSettings,
        remote: RemoteFiles,
        *,
        on_task: Callable[[TaskFacts], None] | None = None,
        command: Sequence[str] = WORKER_COMMAND,
        second: SecondTier | None = None,
    ) -> None:
        self._settings = settings
        self._remote = remote
        self.slab = Slab(settings.slab_bytes)
        self._placer = Placer(self.slab, settings.seed)
        self._pool = Pool(settings.pool, self.slab, on_task=on_task, command=command)
        self._facts = FactsCache(settings.facts_cache_entries)
        self._preparer = Preparer(settings, self._placer, self._pool, second)
        self._detailer = Detailer(self._pool, self._facts)
        self._examining: SingleFlight[Hashable, SourceFacts] = SingleFlight(is_about_the_image)
        self._room = Room(settings.slab_bytes)
        self._outputs = Room(settings.slab_bytes)
        self.clips = ClipService(settings, ClipTools(self._pool, self._placer, remote, self._room))
        self._flows = count()
        self._trimming: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the workers. Raises PoolCannotStart (the codec backend is not there, or no worker comes up)."""
        await self._pool.start()
        self._trimming = asyncio.create_task(self._trim_forever())

    async def stop(self) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
            await asyncio.wait([self._trimming])
        await self._pool.stop()
        self.slab.close()

    @property
    def plan_version(self) -> str:
        return self._pool.fingerprint

    @property
    def alive(self) -> bool:
        """Whether images can be worked on (part of readiness)."""
        return self._pool.alive

    def facts(self) -> MediaFacts:
        return MediaFacts(
            pool=self._pool.facts(),
            slab_in_use_bytes=self.slab.in_use_bytes,
            facts_entries=len(self._facts),
            prepared_entries=len(self._preparer.cache),
            prepared_bytes=self._preparer.cache.held_bytes,
            tier_queries=self._preparer.tier_queries,
            tier_hits=self._preparer.tier_hits,
        )

    # --- look -------------------------------------------------------------------------------------------------------

    async def look(self, body: Body, sources: Sequence[SourceRef], scope: MediaScope) -> Looked:
        asker = Asker(scope, Flow(next(self._flows)))
        looked = self._nothing_yet(scope)
        fetches: dict[str, asyncio.Task[bytes]] = {}
        found = [self._recall(body, ref, asker, looked, fetches) for ref in sources]
        unknown = [facts for facts in found if not isinstance(facts, SourceFacts)]
        try:
            news = iter(await all_of([find_out() for find_out in unknown]))
        except BaseException:
            looked.close()
            raise
        finally:
            for fetching in fetches.values():
                fetching.cancel()
        looked.facts = tuple(facts if isinstance(facts, SourceFacts) else next(news) for facts in found)
        return looked

    def _nothing_yet(self, scope: MediaScope) -> LookedSources:
        # Remote images of one request take no more than a large body does.
        files = self._room.share(max(scope.max_image_bytes, self._settings.slab_bytes // 8), FETCHED)
        return LookedSources((), files, self._outputs.share(self._settings.max_prepared_bytes, PREPARED))

    def _recall(
        self, body: Body, ref: SourceRef, asker: Asker, looked: LookedSources, fetches: dict[str, asyncio.Task[bytes]]
    ) -> SourceFacts | Callable[[], Coroutine[None, None, SourceFacts]]:
        """Facts that are remembered, or how to find them out. Raises InvalidRequest, ImageTooLarge."""
        try:
            if kind_of(body, ref.source) is SourceKind.REMOTE:
                return partial(self._look_remote, body, ref, asker, looked, fetches)
            source = self._placer.text(body, ref, asker.scope.tenant)
            facts = self._remembered(source, asker.scope)
            if facts is None or lacks_detail(facts, asker.scope):
                return partial(self._find_out, source, facts, asker)
            return facts
        except GatewayError as error:
            error.at(ref.name)
            raise

    def _remembered(self, source: Source, scope: MediaScope) -> SourceFacts | None:
        """Facts by look-up identity, judged by this scope's limits: they may have been found under wider ones."""
        facts = self._facts.get(source.key)
        if facts is not None:
            check_size(facts.byte_count, scope.max_image_bytes)
            check_pixels(facts.probe, scope.max_input_pixels)
            check_accepted(facts.probe, scope.accepts)
        return facts

    async def _find_out(self, source: Source, facts: SourceFacts | None, asker: Asker) -> SourceFacts:
        """What is not known yet: the header's facts, then the detail where the scope wants it."""
        facts = facts or await self._examine(source, asker)
        return await self._detailer.detailed(source, facts, asker) if lacks_detail(facts, asker.scope) else facts

    async def _examine(self, source: Source, asker: Asker) -> SourceFacts:
        scope = asker.scope
        key = (source.key, scope.max_image_bytes, scope.max_input_pixels, scope.accepts)
        try:
            return await self._examining.get(key, lambda: self._begin_examining(source, asker))
        except GatewayError as error:
            error.at(source.name)
            raise

    def _begin_examining(self, source: Source, asker: Asker) -> Work[SourceFacts]:
        hold, where = source.place()
        scope = asker.scope
        question = Examine(
            where, self._settings.content_key, scope.max_image_bytes, scope.max_input_pixels, scope.accepts
        )
        task = Task(question, hold, scope.tenant, asker.flow, scope.deadline_s, source.key[1], scope.weight)
        return Work(self._run_examine(task, source.key), hold.close)

    async def _run_examine(self, task: Task, key: tuple[str, bytes]) -> SourceFacts:
        answer = await self._pool.run(task)
        if not isinstance(answer, Examined):
            raise GatewayBug(detail="the pool answered another question")
        facts = SourceFacts(
            byte_count=answer.byte_count,
            placement=PlacementDigest(answer.placement),
            content=ContentDigest(answer.content),
            probe=answer.probe,
            canonical=answer.canonical,
            remote=key[0] == "file",
            bare_base64=answer.bare_base64,
        )
        self._facts.put(key, facts)
        return facts

    async def _look_remote(
        self, body: Body, ref: SourceRef, asker: Asker, looked: LookedSources, fetches: dict[str, asyncio.Task[bytes]]
    ) -> SourceFacts:
        """Fetch, once per request and address, then go on as with any file: known by its bytes, never by its URL."""
        scope = asker.scope
        try:
            url = address_of(body, ref.source)
            if url not in fetches:
                fetches[url] = asyncio.create_task(self._fetch(url, scope, looked.share))
            file = await asyncio.shield(fetches[url])
            looked.files[ref.name] = file
            source = self._placer.file(ref.name, file, scope.tenant)
            return await self._find_out(source, self._remembered(source, scope), asker)
        except GatewayError as error:
            error.at(ref.name)
            raise

    async def _fetch(self, url: str, scope: MediaScope, share: Share) -> bytes:
        until_s = asyncio.get_running_loop().time() + scope.deadline_s  # a scope counts from now, a fetch by the clock
        return await self._remote.fetch(
            url,
            tenant=scope.tenant,
            hosts=scope.hosts,
            max_bytes=scope.max_image_bytes,
            deadline_s=until_s,
            take=share.take,
        )

    async def compare(
        self, body: Body, ref: SourceRef, facts: SourceFacts, sizes: Sequence[Size], scope: MediaScope
    ) -> tuple[float, ...]:
        """PSNR in dB of an inline image's brightness once shrunk to each size and brought back; for reports."""
        asker = Asker(scope, Flow(next(self._flows)))
        source = self._placer.text(body, ref, scope.tenant)
        return (await self._detailer.compared(source, facts, sizes, asker)).psnr_db

    # --- prepare ----------------------------------------------------------------------------------------------------

    async def prepare(
        self, body: Body, looked: Looked, jobs: Sequence[PrepareJob], scope: MediaScope
    ) -> Sequence[PreparedResult]:
        assert isinstance(looked, LookedSources)
        return await self._preparer.prepare(body, looked, jobs, Asker(scope, Flow(next(self._flows))))

    def peek(self, scope: MediaScope, facts: SourceFacts, plan: ImagePlan) -> bool:
        return self._preparer.identity(scope, facts, plan) in self._preparer.cache

    async def _trim_forever(self) -> None:
        while True:
            await asyncio.sleep(_TRIM_PERIOD_S)
            self.slab.trim(_TRIM_STEP_BYTES)
            self.slab.start_period()
            self._pool.look_after_idle()
