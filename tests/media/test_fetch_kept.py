"""Fetching what was fetched before, or is being fetched: kept files, revalidation, one flight."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import SourceBlocked, SourceFailed, SourceTooLarge
from gateway.media.room import Room
from tests.media.raw_origin import NAME, PNG, Origin, fetcher, get, ok, origin, redirect

NOT_MODIFIED = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
FRESH = ok(PNG, "Cache-Control: max-age=60")
VALIDATED = ok(PNG, 'ETag: "1"')


async def test_a_fresh_file_is_not_asked_for_again() -> None:
    async with origin({"/x": FRESH}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        assert [await get(client, url) for _ in range(3)] == [PNG] * 3
        assert there.targets == ["/x"]
        assert client.facts().kept_bytes == len(PNG)
        assert client.facts().results["ok"] == 3


async def test_an_answer_without_lifetime_and_validator_is_fetched_each_time() -> None:
    async with origin({"/x": ok()}) as there, fetcher() as client:
        for _ in range(2):
            await get(client, f"http://{NAME}:{there.port}/x")
        assert len(there.heads) == 2
        assert client.facts().kept_bytes == 0


async def test_a_stale_file_is_asked_about_and_used_when_it_has_not_changed() -> None:
    async def validate(writer: asyncio.StreamWriter) -> None:
        writer.write(NOT_MODIFIED if b'\r\nIf-None-Match: "1"\r\n' in there.heads[-1] else VALIDATED)

    async with origin({"/x": validate}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        assert [await get(client, url) for _ in range(3)] == [PNG] * 3
        assert [b"If-None-Match" in head for head in there.heads] == [False, True, True]


async def test_a_changed_file_replaces_the_kept_one() -> None:
    bodies = iter([b"\x89PNG\r\n\x1a\nold", b"\x89PNG\r\n\x1a\nnew"])

    async def change(writer: asyncio.StreamWriter) -> None:
        writer.write(ok(next(bodies), 'ETag: "1"'))

    async with origin({"/x": change}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        assert (await get(client, url)).endswith(b"old")
        assert (await get(client, url)).endswith(b"new")


async def test_not_modified_without_a_condition_is_a_failure() -> None:
    async with origin({"/x": NOT_MODIFIED}) as there, fetcher() as client:
        with pytest.raises(SourceFailed, match="304"):
            await get(client, f"http://{NAME}:{there.port}/x")


async def test_tenants_share_no_file() -> None:
    async with origin({"/x": FRESH}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        await asyncio.gather(get(client, url, tenant="a"), get(client, url, tenant="b"))
        assert len(there.heads) == 2


async def test_a_kept_file_is_under_todays_policy() -> None:
    async with origin({"/x": FRESH, "/r": redirect("/x")}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        await get(client, url)
        with pytest.raises(SourceBlocked):
            await get(client, url, hosts=("other.example",))
        with pytest.raises(SourceTooLarge):
            await get(client, url, max_bytes=len(PNG) - 1)
        room = Room(10)
        with pytest.raises(SourceTooLarge):
            await get(client, url, take=room.share(10).take)
        assert await get(client, f"http://{NAME}:{there.port}/r") == PNG, "kept behind a redirect, too"
        assert there.targets == ["/x", "/r"]


async def test_nothing_is_kept_where_the_operator_wants_none() -> None:
    async with origin({"/x": FRESH}) as there, fetcher(cache_bytes=0) as client:
        for _ in range(2):
            await get(client, f"http://{NAME}:{there.port}/x")
        assert len(there.heads) == 2


class Gate:
    """An answer that is held back until it is opened."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        await self.open.wait()
        writer.write(self.answer)


async def together(there: Origin, gate: Gate, *fetches: asyncio.Task[bytes]) -> list[bytes | BaseException]:
    await asyncio.wait_for(gate.asked.wait(), 30)
    gate.open.set()
    assert len(there.heads) == 1
    return await asyncio.gather(*fetches, return_exceptions=True)


async def test_requests_that_want_one_file_at_once_fetch_it_once() -> None:
    gate = Gate(ok())
    taken: list[int] = []
    async with origin({"/x": gate}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        fetches = [asyncio.create_task(get(client, url, take=taken.append)) for _ in range(5)]
        assert await together(there, gate, *fetches) == [PNG] * 5
        assert len(there.heads) == 1
    assert sum(taken) == 5 * len(PNG), "each counts what it holds"


async def test_one_failure_reaches_all_who_wait_for_the_file() -> None:
    gate = Gate(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    async with origin({"/x": gate}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        fetches = [asyncio.create_task(get(client, url)) for _ in range(3)]
        ends = await together(there, gate, *fetches)
        assert [type(end) for end in ends] == [SourceFailed] * 3
        assert len(there.heads) == 1


async def test_whoever_began_may_leave_and_whoever_has_no_room_fails_alone() -> None:
    gate = Gate(ok())
    async with origin({"/x": gate}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        leader = asyncio.create_task(get(client, url))
        await asyncio.wait_for(gate.asked.wait(), 30)
        other = asyncio.create_task(get(client, url))
        poor = asyncio.create_task(get(client, url, take=Room(10).share(10).take))
        await asyncio.sleep(0)
        leader.cancel()
        gate.open.set()
        ends = await asyncio.gather(leader, other, poor, return_exceptions=True)
        assert isinstance(ends[0], asyncio.CancelledError)
        assert ends[1] == PNG
        assert isinstance(ends[2], SourceTooLarge)


async def test_the_room_of_the_one_who_began_is_no_failure_of_the_others() -> None:
    gate = Gate(ok())
    async with origin({"/x": gate}) as there, fetcher() as client:
        url = f"http://{NAME}:{there.port}/x"
        poor = asyncio.create_task(get(client, url, take=Room(10).share(10).take))
        await asyncio.wait_for(gate.asked.wait(), 30)
        other = asyncio.create_task(get(client, url))
        await asyncio.sleep(0)
        gate.open.set()
        ends = await asyncio.gather(poor, other, return_exceptions=True)
        assert isinstance(ends[0], SourceTooLarge)
        assert ends[1] == PNG
        assert len(there.heads) == 2
