"""From plans to prepared bytes: what is remembered first, then what a second tier has, then the workers.

Decided here: the order of asking, how an output is named, and that a request is refused as a whole before its first
image costs anything, or once its outputs together are too large. Not decided here: what becomes of pixels (the plan),
when the pool is too busy (``pool``), what the second tier is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from typing import NewType

from gateway.errors import GatewayBug, GatewayError
from gateway.media.cache import PreparedCache, SingleFlight, Work, is_about_the_image
from gateway.media.gathering import all_of
from gateway.media.job import PreparedOutput, Task
from gateway.media.looked import Asker, LookedSources
from gateway.media.messages import Bytes, Prepare
from gateway.media.placing import Placer
from gateway.media.pool import Pool
from gateway.media.second_tier import SecondTier, opened, sealed, tier_key
from gateway.media.settings import MediaSettings
from gateway.ports import Body, MediaScope, PreparedResult, PrepareJob
from gateway.types import ImagePlan, LongString, Prepared, Size, SourceFacts

Identity = NewType("Identity", tuple[Hashable, ...])


class Preparer:
    """Owns the cache of prepared images. ``second`` is asked for what it lacks, and told what was made."""

    def __init__(self, settings: MediaSettings, placer: Placer, pool: Pool, second: SecondTier | None) -> None:
        self._settings = settings
        self._placer = placer
        self._pool = pool
        self._second = second
        self.tier_queries = 0
        self.tier_hits = 0
        self.cache = PreparedCache(settings.prepared_cache_bytes)
        self._preparing: SingleFlight[Hashable, Prepared] = SingleFlight(is_about_the_image)

    async def prepare(
        self, body: Body, looked: LookedSources, jobs: Sequence[PrepareJob], asker: Asker
    ) -> Sequence[PreparedResult]:
        """One result per job, in order; the same picture wanted twice is made once."""
        identities = [self.identity(asker.scope, job.facts, job.plan) for job in jobs]
        known: dict[Identity, Prepared] = {}
        for job, identity in zip(jobs, identities, strict=True):
            prepared = self.cache.get(identity)
            if prepared is not None and _serves(prepared, job):
                known[identity] = prepared
        if self._second is not None and len(known) < len(set(identities)):
            known |= await self._recall(self._second, jobs, identities, known)
        missing = [at for at, identity in enumerate(identities) if identity not in known]
        self._check(looked, [jobs[at] for at in missing], [identities[at] for at in missing], asker)
        _count(known.values(), looked)
        made = await all_of([self._make(body, looked, jobs[at], asker, identities[at]) for at in missing])
        fresh = dict(zip(missing, made, strict=True))
        return [
            PreparedResult(fresh[at], from_cache=False) if at in fresh else PreparedResult(known[identity], True)
            for at, identity in enumerate(identities)
        ]

    def identity(self, scope: MediaScope, facts: SourceFacts, plan: ImagePlan) -> Identity:
        """Whatever the output depends on. By the unforgeable digest, since the cache may be shared between tenants."""
        tenant = "" if self._settings.share_between_tenants else scope.tenant
        return Identity((tenant, facts.content, plan.picture))

    async def _recall(
        self,
        second: SecondTier,
        jobs: Sequence[PrepareJob],
        identities: Sequence[Identity],
        known: dict[Identity, Prepared],
    ) -> dict[Identity, Prepared]:
        """What the second tier has of the rest, asked for all at once; it is remembered here from now on."""
        wanted = {identity: job for identity, job in zip(identities, jobs, strict=True) if identity not in known}
        keys = [tier_key(identity, secret=self._settings.content_key) for identity in wanted]
        self.tier_queries += len(keys)
        values = await asyncio.gather(*(second.get(key) for key in keys))
        found: dict[Identity, Prepared] = {}
        for (identity, job), key, value in zip(wanted.items(), keys, values, strict=True):
            prepared = None if value is None else opened(value, key, secret=self._settings.content_key)
            if prepared is not None and _serves(prepared, job):
                found[identity] = prepared
                self.tier_hits += 1
                self.cache.put(identity, prepared)
        return found

    def _check(
        self, looked: LookedSources, jobs: Sequence[PrepareJob], identities: Sequence[Identity], asker: Asker
    ) -> None:
        """Refuse what cannot be done in time. What another request is having made already costs nothing more."""
        distinct = {
            identity: job
            for identity, job in zip(identities, jobs, strict=True)
            if (identity, job.wants_sha256) not in self._preparing
        }
        questions = [self._question(job, asker.scope, _unplaced(job, looked)) for job in distinct.values()]
        self._pool.check(questions, asker.scope)

    async def _make(
        self, body: Body, looked: LookedSources, job: PrepareJob, asker: Asker, identity: Identity
    ) -> Prepared:
        try:
            prepared = await self._preparing.get(
                (identity, job.wants_sha256), lambda: self._begin(body, looked, job, asker, identity)
            )
            looked.hold_output(prepared)
        except GatewayError as error:
            error.at(job.source.name)
            raise
        return prepared

    def _begin(
        self, body: Body, looked: LookedSources, job: PrepareJob, asker: Asker, identity: Identity
    ) -> Work[Prepared]:
        scope, file = asker.scope, looked.files.get(job.source.name)
        if file is None:
            hold, where = self._placer.place(body, job.source.source)
        else:
            hold, where = self._placer.place_file(file)
        question = self._question(job, scope, where)
        # It stands in line behind its own request's images too.
        waits_s = scope.waits_s + scope.deadline_s
        task = Task(question, hold, scope.tenant, asker.flow, waits_s, job.facts.content, scope.weight)
        return Work(self._run(task, identity), hold.close)

    async def _run(self, task: Task, identity: Identity) -> Prepared:
        output = await self._pool.run(task)
        if not isinstance(output, PreparedOutput):
            raise GatewayBug(detail="the pool answered another question")
        answer = output.answer
        size = Size(answer.width, answer.height)
        prepared = Prepared(output.data_url, size, answer.format, answer.file_byte_count, answer.file_sha256)
        self.cache.put(identity, prepared)
        if self._second is not None:
            key = tier_key(identity, secret=self._settings.content_key)
            self._second.put(key, sealed(prepared, key, secret=self._settings.content_key))
        return prepared

    @staticmethod
    def _question(job: PrepareJob, scope: MediaScope, where: Bytes) -> Prepare:
        return Prepare(where, job.plan, job.facts.probe, scope.max_image_bytes, job.wants_sha256)


def _serves(prepared: Prepared, job: PrepareJob) -> bool:
    return prepared.file_sha256 is not None or not job.wants_sha256


def _count(prepared: Iterable[Prepared], looked: LookedSources) -> None:
    for each in prepared:
        looked.hold_output(each)


def _unplaced(job: PrepareJob, looked: LookedSources) -> Bytes:
    """A source by its length alone, as far as its cost goes."""
    source, file = job.source.source, looked.files.get(job.source.name)
    if file is not None:
        return Bytes(0, len(file), is_text=False, has_escapes=False)
    if isinstance(source, LongString):
        return Bytes(0, source.span.byte_count, is_text=True, has_escapes=source.has_escapes)
    return Bytes(0, len(source), is_text=True, has_escapes=False)
