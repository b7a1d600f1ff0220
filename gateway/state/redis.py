"""The only door to redis-py: one connection to a Redis or Valkey server, a cluster, or a master that sentinels know.

Decided here: how a connection is made, and which of the library's habits are switched off. It never resends (a resent
charge would count twice) and never waits by itself longer than ``connect_timeout_s``. Every ``open`` builds a new
client, so a rotated password, a failed-over master and a moved cluster are found by opening again. Batches go out as
pipelines without a transaction: one write, one round trip (in a cluster one for each node, at the same time). Not
decided here: deadlines and being up or down (``link``), what is said (``wire``).

RESP2 is spoken because every server speaks it and the answers of scripts are the same in both.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from gateway.state.settings import RedisMode, RedisSettings
from gateway.state.wire import Command, ErrorReply, Reply, Script, StoreUnavailable

_CLOSE_S = 0.2
# What the library's parser raises for bytes that are no reply: whatever answers there is no Redis.
_GARBLED = (ValueError, RecursionError)
_OWN_OPTIONS = ("host", "port", "path", "db", "username", "password")


class _Pipeline(Protocol):
    """What is used of the library's pipelines; their own types promise less than they do."""

    def execute_command(self, *words: Any) -> object: ...
    async def execute(self, *, raise_on_error: bool) -> list[Any]: ...


class RedisWire:
    """``wire.Wire`` over redis-py."""

    def __init__(self, settings: RedisSettings, scripts: Sequence[Script] = ()) -> None:
        """``scripts`` are made known at every opening, so that none is sent whole while requests wait."""
        self._settings = settings
        self._scripts = scripts
        self._client: Redis | RedisCluster | None = None
        self._also_close: list[Redis] = []

    async def open(self) -> None:
        """Connect, log in, ask for a sign of life. Raises StoreUnavailable, naming what is wrong."""
        await self.close()
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s * (1 + len(self._settings.nodes))):
                password = await self._password()
                self._client = await self._connect(password)
                await self._client.ping()  # a server that takes no writes says so at the first script
                for script in self._scripts:
                    await self._client.script_load(script.source)
        except BaseException as error:
            await self.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise _unavailable(error) from error

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        """One round trip, and a second one where the server had forgotten a script: that is then sent whole."""
        if self._client is None:
            raise StoreUnavailable("closed")
        try:
            replies = await self._pipelined(commands)
            forgotten = [at for at, reply in enumerate(replies) if commands[at].script and _is_unknown_script(reply)]
            if forgotten:
                again = await self._pipelined([commands[at].whole for at in forgotten])
                for at, reply in zip(forgotten, again, strict=True):
                    replies[at] = reply
            return replies
        except (RedisError, OSError, RedisClusterException, asyncio.IncompleteReadError, *_GARBLED) as error:
            raise _unavailable(error) from error

    async def close(self) -> None:
        """Cut the connection. A server that does not answer is not waited for."""
        closing: list[Callable[[], Awaitable[None]]] = [client.aclose for client in self._also_close]
        if self._client is not None:
            closing.append(self._client.aclose)
        self._client, self._also_close = None, []
        for close in closing:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await close()

    async def _pipelined(self, commands: Sequence[Command]) -> list[Reply]:
        assert self._client is not None
        if isinstance(self._client, RedisCluster):
            pipeline = cast("_Pipeline", self._client.pipeline())
        else:
            pipeline = cast("_Pipeline", self._client.pipeline(transaction=False))
        for command in commands:
            pipeline.execute_command(*command.words)
        return [_reply(value) for value in await pipeline.execute(raise_on_error=False)]

    async def _password(self) -> str | None:
        if self._settings.password_file is None:
            return self._settings.password
        try:
            text = await asyncio.to_thread(Path(self._settings.password_file).read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnavailable("no_password", f"redis.password_file cannot be read: {error}") from error
        return text.strip()

    async def _connect(self, password: str | None) -> Redis | RedisCluster:
        settings = self._settings
        given: dict[str, Any] = dict(parse_url(settings.url))
        is_tls = given.pop("connection_class", None) is SSLConnection
        address = {name: given[name] for name in _OWN_OPTIONS if name in given}
        if settings.username is not None:
            address["username"] = settings.username
        if password is not None:
            address["password"] = password
        transport = self._transport(is_tls=is_tls)
        if settings.mode is RedisMode.CLUSTER:
            return await self._cluster(address, transport)
        if settings.mode is RedisMode.SENTINEL:
            return self._master(address, transport)
        if "path" in address:
            address["unix_socket_path"] = address.pop("path")
        return Redis(**address, **transport, single_connection_client=False, max_connections=2)

    def _transport(self, *, is_tls: bool) -> dict[str, Any]:
        settings = self._settings
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": settings.connect_timeout_s,
            # With one server every wait is bounded from outside. With several, one that is frozen must be passed over.
            "socket_timeout": None if settings.mode is RedisMode.STANDALONE else settings.connect_timeout_s,
            "client_name": "vlm-gateway",
        }
        if is_tls:
            options |= {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
            options["ssl_ca_certs"] = settings.tls_ca_file
            options["ssl_certfile"], options["ssl_keyfile"] = settings.tls_certificate_file, settings.tls_key_file
        return options

    async def _cluster(self, address: dict[str, Any], transport: dict[str, Any]) -> RedisCluster:
        first = (str(address.pop("host")), int(address.pop("port", 6379)))
        nodes = [ClusterNode(host, port) for host, port in (first, *self._settings.nodes)]
        address.pop("db", None)
        client = RedisCluster(startup_nodes=nodes, **address, **transport)
        await client.initialize()
        return client

    def _master(self, address: dict[str, Any], transport: dict[str, Any]) -> Redis:
        settings = self._settings
        first = (str(address.pop("host")), int(address.pop("port", 26379)))
        own = {"username": settings.sentinel_username, "password": settings.sentinel_password}
        make = cast("Callable[..., Sentinel]", Sentinel)  # the library leaves its parameters without types
        sentinels = make((first, *settings.nodes), sentinel_kwargs={**transport, **own}, **address, **transport)
        self._also_close = list(sentinels.sentinels)
        master: Redis = sentinels.master_for(settings.sentinel_service)
        return master


def _is_unknown_script(reply: Reply) -> bool:
    return isinstance(reply, ErrorReply) and reply.code == "NOSCRIPT"


def _reply(value: Any) -> Reply:
    """A reply without the library's types. Raises what is no answer to this one command."""
    if isinstance(value, ResponseError):
        return _error_reply(value)
    if isinstance(value, Exception):
        raise value
    if isinstance(value, list | tuple):
        return [_reply(entry) for entry in value]
    if value is True:  # the library's word for a status reply
        return b"OK"
    return cast("Reply", value)


def _error_reply(error: ResponseError) -> ErrorReply:
    # The library turns well-known codes into classes and cuts them off the text.
    name = type(error).__name__
    if name == "NoScriptError":
        return ErrorReply("NOSCRIPT", str(error))
    if isinstance(error, NoPermissionError):
        return ErrorReply("NOPERM", str(error))
    code, _, message = str(error).partition(" ")
    return ErrorReply(code if code.isupper() else "ERR", message if code.isupper() else str(error))


def _unavailable(error: BaseException) -> StoreUnavailable:
    if isinstance(error, StoreUnavailable):
        return error
    if isinstance(error, TimeoutError) or "imeout" in type(error).__name__:
        return StoreUnavailable("timeout", str(error))
    if isinstance(error, AuthenticationError | NoPermissionError):
        return StoreUnavailable("denied", str(error))
    if isinstance(error, ResponseError):
        return StoreUnavailable("refused", str(error))
    if isinstance(error, _GARBLED):
        return StoreUnavailable("refused", f"an answer that is none: {error}")
    if isinstance(error, RedisError | OSError | RedisClusterException | asyncio.IncompleteReadError):
        return StoreUnavailable("no_connection", str(error))
    raise error
