"""The order of asking: memory, second tier, workers; and that a request is refused whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gateway.errors import BodyMemoryExhausted, ImageTooLarge, PoolSaturated
from gateway.media.looked import Asker, Flow, LookedSources
from gateway.media.placing import Placer
from gateway.media.pool import Pool
from gateway.media.preparing import Preparer
from gateway.media.room import PREPARED, Room
from gateway.media.settings import MIB, MediaSettings
from gateway.media.shm import HeapBody
from gateway.ports import MediaScope, PreparedResult, PrepareJob, SourceRef
from gateway.types import ContentDigest, ImageFormat, PlacementDigest, Probe, Size, SourceFacts, TenantId

pytestmark = pytest.mark.slow

SCOPE = MediaScope(TenantId("t"), 8 * MIB, 100_000_000, hosts=None, deadline_s=20.0)


class Shelf:
    """A second tier that keeps everything."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []

    async def get(self, key: bytes) -> bytes | None:
        self.asked.append(key)
        await asyncio.sleep(0)
        return self.values.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self.values[key] = value


@dataclass
class Workshop:
    """A preparer with all it needs, and what its request holds."""

    kit: Any
    pool: Pool
    preparer: Preparer
    outputs: Room = field(default_factory=lambda: Room(1000))
    limit_bytes: int = 1000

    def looked(self) -> LookedSources:
        files = Room(MIB).share(MIB)
        return LookedSources((), files, self.outputs.share(self.limit_bytes, PREPARED))

    def job(self, number: int, *, wants_sha256: bool = False, **orders: Any) -> PrepareJob:
        text = self.kit.image(n=number, **orders).decode()
        content = ContentDigest(b"%032d" % number)
        facts = SourceFacts(
            len(text), PlacementDigest(content[:16]), content, Probe(ImageFormat.PNG, Size(64, 48)), canonical=True
        )
        return PrepareJob(SourceRef(f"part.{number}", text), facts, self.kit.plan(), wants_sha256)

    async def prepare(
        self, jobs: Sequence[PrepareJob], scope: MediaScope = SCOPE, looked: LookedSources | None = None
    ) -> Sequence[PreparedResult]:
        held = looked or self.looked()
        return await self.preparer.prepare(HeapBody(b""), held, jobs, Asker(scope, Flow(1)))

    @property
    def made(self) -> int:
        return sum(fact.operation == "prepare" for fact in self.kit.reported)


Open = Callable[..., Awaitable[Workshop]]


@pytest.fixture
def opened(kit: Any, start_pool: Any) -> Open:
    async def start(second: Shelf | None = None, *, secret: bytes = b"k" * 32, **pool_settings: Any) -> Workshop:
        pool = await start_pool(**pool_settings)
        settings = MediaSettings(content_key=secret, seed=1)
        return Workshop(kit, pool, Preparer(settings, Placer(kit.slab, 1), pool, second))

    return start


async def test_what_is_wanted_twice_is_made_once_and_remembered(opened: Open) -> None:
    workshop = await opened()
    job = workshop.job(1)
    first, second = await workshop.prepare([job, replace(job, source=SourceRef("other", job.source.source))])
    assert first.prepared is second.prepared
    assert not first.from_cache
    (again,) = await workshop.prepare([job])
    assert (again.from_cache, again.prepared, workshop.made) == (True, first.prepared, 1)


async def test_another_process_finds_in_the_second_tier_what_one_has_made(opened: Open) -> None:
    shelf = Shelf()
    one, other = await opened(shelf), await opened(shelf)
    (made,) = await one.prepare([one.job(1)])
    (found, fresh) = await other.prepare([other.job(1), other.job(2)])
    assert (found.from_cache, fresh.from_cache) == (True, False)
    assert found.prepared == made.prepared
    assert one.made == 2
    asked = len(shelf.asked)
    assert (await other.prepare([other.job(1)]))[0].prepared is found.prepared
    assert len(shelf.asked) == asked  # in memory by now
    assert not any(b"part" in key or b"t" * 2 in key for key in shelf.values)


async def test_the_second_tier_is_believed_nothing(opened: Open) -> None:
    shelf = Shelf()
    one = await opened(shelf)
    await one.prepare([one.job(1), one.job(2)])
    first, second = list(shelf.values)
    shelf.values[first], shelf.values[second] = shelf.values[second], shelf.values[first]
    other = await opened(shelf)
    results = await other.prepare([other.job(1), other.job(2)])
    assert [result.from_cache for result in results] == [False, False]


async def test_tenants_and_deployments_have_entries_of_their_own(opened: Open) -> None:
    shelf = Shelf()
    one, other = await opened(shelf), await opened(shelf, secret=b"o" * 32)
    await one.prepare([one.job(1)])
    assert not (await other.prepare([other.job(1)]))[0].from_cache
    fresh = await opened(shelf)
    assert not (await fresh.prepare([fresh.job(1)], replace(SCOPE, tenant=TenantId("stranger"))))[0].from_cache
    assert len(shelf.values) == 3


async def test_an_entry_without_the_hash_that_is_wanted_does_not_serve(opened: Open) -> None:
    shelf = Shelf()
    one, other = await opened(shelf), await opened(shelf)
    await one.prepare([one.job(1)])
    (hashed,) = await other.prepare([other.job(1, wants_sha256=True)])
    assert not hashed.from_cache
    assert hashed.prepared.file_sha256 is not None


async def test_a_request_is_refused_whole_before_its_first_image(opened: Open) -> None:
    workshop = await opened(workers=1, max_queue_jobs=3)
    with pytest.raises(PoolSaturated):
        await workshop.prepare([workshop.job(number) for number in range(4)])
    with pytest.raises(PoolSaturated):
        await workshop.prepare([workshop.job(number) for number in range(3)], replace(SCOPE, deadline_s=0.001))
    assert workshop.kit.reported == []
    # Counted are images that have to be made: known ones, and each of several alike once, cost nothing.
    await workshop.prepare([workshop.job(number) for number in range(3)])
    await workshop.prepare([workshop.job(number) for number in (0, 1, 2, 3, 3, 4, 5)])
    assert workshop.made == 6


async def test_who_has_no_patience_is_refused_while_others_images_are_made_and_served_when_not(
    opened: Open, until: Any
) -> None:
    workshop = await opened(workers=1)
    hasty = replace(SCOPE, patience_s=0.0)
    await workshop.prepare([workshop.job(number) for number in range(3)], hasty)
    slow = workshop.job(9, at="render", do="sleep", value=0.2)
    workshop.pool._pace._by_kind["png"].taken_s = 1e3  # so that the one that runs is expected to go on
    first = asyncio.create_task(workshop.prepare([slow]))
    await until(lambda: workshop.pool.facts().busy == 1)
    with pytest.raises(PoolSaturated):
        await workshop.prepare([workshop.job(4)], hasty)
    await first


async def test_an_image_that_another_request_has_made_already_does_not_count(opened: Open, until: Any) -> None:
    workshop = await opened(workers=1, max_queue_jobs=1)
    slow = [workshop.job(number, at="render", do="sleep", value=0.2) for number in range(2)]
    first = asyncio.create_task(workshop.prepare(slow[:1]))
    await until(lambda: workshop.pool.facts().busy == 1)
    second = asyncio.create_task(workshop.prepare(slow))
    ends = await asyncio.gather(first, second)
    assert ends[1][0].prepared is ends[0][0].prepared
    assert workshop.made == 2


async def test_the_outputs_of_a_request_are_bounded_together(opened: Open) -> None:
    workshop = await opened()
    size = len((await workshop.prepare([workshop.job(0)]))[0].prepared.data_url)
    workshop.limit_bytes = 2 * size
    looked = workshop.looked()
    await workshop.prepare([workshop.job(0), workshop.job(0), workshop.job(1)], looked=looked)
    looked.close()
    with pytest.raises(ImageTooLarge, match="The prepared images together") as refused:
        await workshop.prepare([workshop.job(number) for number in range(1, 4)], looked=looked)
    assert refused.value.part is not None


async def test_the_outputs_of_all_requests_are_bounded_together(opened: Open) -> None:
    workshop = await opened()
    size = len((await workshop.prepare([workshop.job(0)]))[0].prepared.data_url)
    workshop.outputs = Room(2 * size)
    first, second = workshop.looked(), workshop.looked()
    await workshop.prepare([workshop.job(1), workshop.job(2)], looked=first)
    with pytest.raises(BodyMemoryExhausted):
        await workshop.prepare([workshop.job(3)], looked=second)
    first.drop_files()
    assert workshop.outputs.held_bytes == 2 * size
    first.close()
    await workshop.prepare([workshop.job(3)], looked=second)
    second.close()
    assert workshop.outputs.held_bytes == 0
