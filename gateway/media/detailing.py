"""Facts that know their image's detail: asked of a worker where a policy wants it, once for each source.

Decided here: which facts lack it, and that they are remembered with it. It is a question of its own, after the one
about the header: only the header tells what decoding will cost, and that is reserved before it starts. Not decided
here: the measure (``codecs.detail``) and what follows from it (the plan).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from gateway.errors import GatewayBug, GatewayError
from gateway.media.cache import FactsCache, SingleFlight, Work, is_about_the_image
from gateway.media.job import Task
from gateway.media.looked import Asker
from gateway.media.messages import Measure, Measured
from gateway.media.placing import Source
from gateway.media.pool import Pool
from gateway.ports import MediaScope
from gateway.types import ImageFormat, Size, SourceFacts

# Drawn, not taken: their pages are text, and a plan is made for each by itself.
_UNMEASURED = frozenset({ImageFormat.PDF, ImageFormat.SVG})


def lacks_detail(facts: SourceFacts, scope: MediaScope) -> bool:
    """Whether a worker has to look: the policy asks, and this image could be made smaller."""
    above = scope.measures_above_pixels
    if above is None or facts.detail is not None:
        return False
    probe = facts.probe
    several_pages = probe.format.is_document and probe.frames > 1
    return probe.raster.pixels > above and probe.complete and not several_pages and probe.format not in _UNMEASURED


class Detailer:
    """Measures through the pool, and keeps what it found with the facts."""

    def __init__(self, pool: Pool, facts: FactsCache) -> None:
        self._pool = pool
        self._facts = facts
        self._flights: SingleFlight[Hashable, SourceFacts] = SingleFlight(is_about_the_image)

    async def detailed(self, source: Source, facts: SourceFacts, asker: Asker) -> SourceFacts:
        """The facts with their detail. Raises what the pool raises, with the source's name as part."""
        key = (source.key, asker.scope.max_image_bytes)
        try:
            return await self._flights.get(key, lambda: self._begin(source, facts, asker))
        except GatewayError as error:
            error.at(source.name)
            raise

    async def compared(self, source: Source, facts: SourceFacts, sizes: Sequence[Size], asker: Asker) -> Measured:
        """The detail again, and what would be left of it in pictures of these sizes."""
        task = _task(source, facts, tuple(sizes), asker)
        try:
            return await self._measured(task)
        finally:
            task.source.close()

    def _begin(self, source: Source, facts: SourceFacts, asker: Asker) -> Work[SourceFacts]:
        task = _task(source, facts, (), asker)
        return Work(self._run(task, source, facts), task.source.close)

    async def _run(self, task: Task, source: Source, facts: SourceFacts) -> SourceFacts:
        found = replace(facts, detail=(await self._measured(task)).detail)
        self._facts.put(source.key, found)
        return found

    async def _measured(self, task: Task) -> Measured:
        answer = await self._pool.run(task)
        if not isinstance(answer, Measured):
            raise GatewayBug(detail="the pool answered another question")
        return answer


def _task(source: Source, facts: SourceFacts, sizes: tuple[Size, ...], asker: Asker) -> Task:
    """The question, with a claim on the source's bytes that whoever runs it gives back."""
    scope = asker.scope
    hold, where = source.place()
    question = Measure(where, facts.probe, scope.max_image_bytes, sizes)
    return Task(question, hold, scope.tenant, asker.flow, scope.waits_s, source.key[1], scope.weight)
