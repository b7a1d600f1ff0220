"""Clients that drip: borne while there is room, given up when a body that moves needs it."""

from __future__ import annotations

import asyncio

import pytest

from gateway.api.client import HttpClient
from gateway.api.uploads import Uploads
from gateway.errors import BodyMemoryExhausted
from gateway.media.shm import Slab
from tests.api.harness import Journey, Wire, post, serving

MIB = 1 << 20


def reading() -> Journey:
    async def journey(client: HttpClient) -> None:
        body = await client.read(8 * MIB)
        size = body.stop - body.start
        body.close()
        await client.start(200, (), len(str(size)))
        await client.write(str(size).encode())
        await client.finish()

    return journey


async def until_held(slab: Slab, byte_count: int) -> None:
    async with asyncio.timeout(30):
        while slab.in_use_bytes < byte_count:  # noqa: ASYNC110  # the server does not tell
            await asyncio.sleep(0.002)


async def begin(wire: Wire, size: int, sent: int) -> None:
    await wire.send(post(bytes(sent), f"Content-Length: {size}", length=False))


async def test_a_body_that_drips_makes_room_for_one_that_moves() -> None:
    slab = Slab(4 * MIB)
    async with serving(reading(), slab=slab, upload_grace_s=0.0) as (state, slow):
        await begin(slow, 3 * MIB, 10)
        await until_held(slab, 3 * MIB)
        quick = await Wire.to(state.port)
        await quick.send(post(bytes(2 * MIB)))
        assert (await quick.answer()).body == str(2 * MIB).encode()
        refused = await slow.answer()
        assert (refused.status, refused.json()["error"]["code"]) == (503, "body_memory_exhausted")
        assert "bytes a second" in refused.json()["error"]["message"]
        quick.close()
    assert slab.in_use_bytes == 0


async def test_while_there_is_room_a_slow_body_arrives() -> None:
    async with serving(reading(), slab=Slab(8 * MIB), upload_grace_s=0.0) as (state, slow):
        await begin(slow, MIB, 10)
        quick = await Wire.to(state.port)
        await quick.send(post(bytes(2 * MIB)))
        assert (await quick.answer()).status == 200
        await slow.send(bytes(MIB - 10))
        assert (await slow.answer()).body == str(MIB).encode()
        quick.close()


async def test_a_body_that_has_just_begun_is_not_given_up() -> None:
    slab = Slab(4 * MIB)
    async with serving(reading(), slab=slab, upload_grace_s=60.0) as (state, slow):
        await begin(slow, 3 * MIB, 10)
        await until_held(slab, 3 * MIB)
        other = await Wire.to(state.port)
        await begin(other, 2 * MIB, 0)
        assert (await other.answer()).status == 503
        await slow.send(bytes(3 * MIB - 10))
        assert (await slow.answer()).status == 200
        other.close()


async def test_nobody_is_given_up_in_vain_and_the_slowest_goes_first() -> None:
    uploads = Uploads(Slab(4 * MIB), grace_s=0.0)
    bodies = [uploads.begin() for _ in range(3)]
    extents = [await uploads.room(body, MIB) for body in bodies]
    for body, received in zip(bodies, (100, 0, 200), strict=True):
        body.received_bytes = received
        body.patience = asyncio.timeout(60)
    newcomer = uploads.begin()
    await asyncio.sleep(0.01)  # so that a pace can be told
    with pytest.raises(BodyMemoryExhausted):
        await uploads.room(newcomer, 5 * MIB)
    assert not any(body.is_given_up for body in bodies)

    async def hold(number: int) -> None:
        patience = bodies[number].patience
        assert patience is not None
        try:
            async with patience:
                await asyncio.sleep(30)
        except TimeoutError:
            with pytest.raises(BodyMemoryExhausted):
                bodies[number].check()
            extents[number].close()
            uploads.end(bodies[number])

    held = [asyncio.create_task(hold(number)) for number in range(3)]
    await asyncio.sleep(0)
    extent = await uploads.room(newcomer, 2 * MIB)
    assert [body.is_given_up for body in bodies] in ([True, True, False], [False, True, False])
    extent.close()
    for task in held:
        task.cancel()
    await asyncio.wait(held)


async def test_a_body_does_not_make_room_for_itself() -> None:
    uploads = Uploads(Slab(MIB), grace_s=0.0)
    body = uploads.begin()
    extent = await uploads.room(body, MIB)
    body.patience = asyncio.timeout(60)
    with pytest.raises(BodyMemoryExhausted):
        await uploads.room(body, MIB)
    assert not body.is_given_up
    body.check()
    extent.close()
