"""What is said to a shared store and what it answers, without a library's types.

Decided here: the vocabulary between ``redis`` (which knows the library), ``link`` (deadlines, being up or down) and
those who have something to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Argument: TypeAlias = bytes | str | int
Reply: TypeAlias = "bytes | int | list[Reply] | ErrorReply | None"


class StoreUnavailable(Exception):
    """The shared store did not answer in time, or not usefully. ``reason`` is a word for logs and metrics."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error that the server answered to one command, e.g. code ``WRONGTYPE``."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script; it is run by its digest and sent whole only where a server does not know it."""

    name: str
    source: str
    sha1: str

    @staticmethod
    def of(name: str, source: str) -> Script:
        """The digest is what Redis calls the script; nothing secret depends on it."""
        return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True)
class Command:
    """One command, or one run of a script on keys of one slot."""

    words: tuple[Argument, ...]
    script: Script | None = None

    @staticmethod
    def run(script: Script, keys: Sequence[str], *arguments: Argument) -> Command:
        """A script by its digest."""
        return Command(("EVALSHA", script.sha1, len(keys), *keys, *arguments), script)

    @property
    def whole(self) -> Command:
        """The same with the script's source, for a server that does not know the digest."""
        assert self.script is not None, "only scripts are known by a digest"
        return Command(("EVAL", self.script.source, *self.words[2:]), self.script)


class Wire(Protocol):
    """A connection that carries batches of commands in their order. One batch at a time."""

    async def open(self) -> None:
        """Connect and check that commands are answered. Raises StoreUnavailable."""
        ...

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        """All replies in order, in one round trip; errors stand in their places. Raises StoreUnavailable."""
        ...

    async def close(self) -> None:
        """Give everything up at once; never raises."""
        ...
