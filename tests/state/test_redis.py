"""The door against real servers: every way of connecting, every way of failing to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.state.redis import RedisWire
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command, ErrorReply, Reply, Script, StoreUnavailable
from tests.certificates import make_authority
from tests.ports import free_port
from tests.state.redis_server import RedisServer, running

SUM = Script.of("sum", "return {redis.call('INCRBY', KEYS[1], ARGV[1]), 'ok', false, {1, 2}}")

# Of a client of a server that is well, on a machine that is busy.
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("tls"), "server", "client")


async def carried(settings: RedisSettings, *commands: Command) -> list[Reply]:
    wire = RedisWire(settings)
    await wire.open()
    try:
        return await wire.carry(commands)
    finally:
        await wire.close()


async def reason(settings: RedisSettings) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        await carried(settings, Command(("GET", "k")))
    return caught.value.reason


async def test_a_batch_of_scripts_is_one_round_trip_and_errors_stand_in_their_places(server: RedisServer) -> None:
    server.ask("FLUSHALL")
    wire = RedisWire(RedisSettings(server.url), (SUM,))
    await wire.open()
    before = server.calls("eval"), server.calls("evalsha")
    commands = [
        Command.run(SUM, ("{a}n",), 5),
        Command(("LPUSH", "{a}n", "x")),
        Command.run(SUM, ("{b}n",), 7),
        Command(("GET", "{a}n")),
    ]
    first = await wire.carry(commands)
    assert first[0] == [5, b"ok", None, [1, 2]]
    assert isinstance(first[1], ErrorReply)
    assert first[1].code == "WRONGTYPE"
    assert first[2] == [7, b"ok", None, [1, 2]]
    assert first[3] == b"5"
    assert (server.calls("eval"), server.calls("evalsha")) == (before[0], before[1] + 2)
    server.ask("SCRIPT", "FLUSH")
    assert (await wire.carry(commands[:1]))[0] == [10, b"ok", None, [1, 2]]
    assert server.calls("eval") == before[0] + 1
    await wire.close()


async def test_a_unix_socket_and_a_database_of_its_own(server: RedisServer) -> None:
    own = Script.of("own", "redis.call('SET', KEYS[1], ARGV[1]) return 1")
    assert await carried(RedisSettings(f"{server.unix_url}?db=3"), Command.run(own, ("k",), "there")) == [1]
    assert await carried(RedisSettings(f"{server.unix_url}?db=3"), Command(("GET", "k"))) == [b"there"]
    assert await carried(RedisSettings(server.url), Command(("GET", "k"))) == [None]


async def test_a_server_that_is_not_there() -> None:
    assert await reason(RedisSettings(f"redis://127.0.0.1:{free_port()}/0")) == "no_connection"
    assert await reason(RedisSettings("unix:///nowhere/redis.sock")) == "no_connection"
    assert await reason(RedisSettings("redis://name.invalid/0")) == "no_connection"


async def test_a_frozen_server_is_given_up_and_nothing_stays_behind(server: RedisServer) -> None:
    settings = RedisSettings(server.url, connect_timeout_s=PATIENCE_S)
    wire = RedisWire(settings)
    await wire.open()
    server.freeze()
    try:
        assert await reason(replace(settings, connect_timeout_s=0.1)) == "timeout"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await wire.carry([Command(("GET", "k"))])
        await wire.close()
    finally:
        server.thaw()
    assert await carried(settings, Command(("ECHO", "yes"))) == [b"yes"]


# What docs/behaviour.md and docker/kubernetes/README.md grant, and no more.
ACL_RULES = ("+@scripting", "+@read", "+@write", "+@connection", "+time", "+ping")


async def test_an_acl_user_whose_password_is_in_a_file_that_is_rotated(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    with running() as server:
        server.ask("ACL", "SETUSER", "gateway", "on", ">first", "~vlmgw:*", *ACL_RULES)
        settings = RedisSettings(server.url, username="gateway", password_file=str(secret))
        assert await reason(settings) == "no_password"
        secret.write_text("first\n")
        wire = RedisWire(settings)
        await wire.open()
        assert await wire.carry([Command(("SET", "vlmgw:k", "v"))]) == [b"OK"]
        (denied,) = await wire.carry([Command(("SET", "other", "v"))])
        assert isinstance(denied, ErrorReply)
        assert denied.code == "NOPERM"
        server.ask("ACL", "SETUSER", "gateway", "resetpass", ">second")
        assert await reason(settings) == "denied"
        secret.write_text("second")
        await wire.open()
        assert await wire.carry([Command(("GET", "vlmgw:k"))]) == [b"v"]
        await wire.close()


async def test_a_password_in_the_address_gives_way_to_the_setting() -> None:
    with running("--requirepass", "right", password="right") as server:
        address = server.url.replace("redis://", "redis://:wrong@")
        assert await reason(RedisSettings(address)) == "denied"
        assert await carried(RedisSettings(address, password="right"), Command(("ECHO", "yes"))) == [b"yes"]


async def test_tls_with_certificates_of_both_sides(certificates: Path) -> None:
    with running(tls=certificates) as server:
        settings = RedisSettings(server.url, tls_ca_file=str(certificates / "ca.pem"))
        assert await reason(settings) == "no_connection"  # the server asks for a certificate
        whole = replace(
            settings,
            tls_certificate_file=str(certificates / "client.pem"),
            tls_key_file=str(certificates / "client.key"),
        )
        assert await carried(whole, Command(("ECHO", "yes"))) == [b"yes"]
        assert await reason(replace(whole, tls_ca_file=None)) == "no_connection"  # nobody we trust signed it
        wire = RedisWire(replace(whole, connect_timeout_s=PATIENCE_S))
        await wire.open()
        server.freeze()
        await wire.close()
        server.thaw()
