"""One ordered lane to a shared store: what is asked while a batch is under way goes out together as the next one.

Decided here: the deadline of a call, and what being down is. A request never pays for a connection, and never for a
store that is known to be away: the first call that misses its deadline (or meets an error) takes the link down, every
other call that waits fails in that moment, and later ones fail at once until the owner has opened the link again. So a
frozen store costs its callers one deadline altogether. Commands are carried out in the order in which they were asked,
which is what lets a release follow the take it undoes.

A deadline is lengthened while it is *our* loop that was late, for a stall of this process is no fault of the store.
Not decided here: when to try again (``keeper``), what to do meanwhile, what is said.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.state.wire import Command, ErrorReply, Reply, StoreUnavailable, Wire

_BATCH = 256
_LATE_S = 0.010  # a timer that fires later than this says that the loop stood still
_LENGTHENED = 3


@dataclass(slots=True)
class _Asked:
    commands: Sequence[Command]
    answer: asyncio.Future[list[Reply]]


class Link:
    """A lane over one ``Wire``. ``on_down`` is told the reason once each time the link goes down."""

    def __init__(self, wire: Wire, *, deadline_s: float, on_down: Callable[[StoreUnavailable], None]) -> None:
        self._wire = wire
        self._deadline_s = deadline_s
        self._on_down = on_down
        self._asked: deque[_Asked] = deque()
        self._under_way: list[_Asked] = []
        self._wanted = asyncio.Event()
        self._carrier: asyncio.Task[None] | None = None
        self._is_up = False

    @property
    def is_up(self) -> bool:
        return self._is_up

    async def open(self) -> None:
        """Connect anew; being up begins here. Raises StoreUnavailable."""
        self._fall(StoreUnavailable("closed"))
        await self._end_carrier()
        await self._wire.open()
        self._is_up = True
        self._carrier = asyncio.get_running_loop().create_task(self._carry_on())

    async def close(self) -> None:
        """End for good (or until ``open``); waiting calls fail."""
        self._fall(StoreUnavailable("closed"))
        await self._end_carrier()
        await self._wire.close()

    def ask(self, commands: Sequence[Command], deadline_s: float | None = None) -> asyncio.Future[list[Reply]]:
        """Send commands; the future holds their replies or raises StoreUnavailable, within the deadline.

        An error that the store answers to any of the commands is StoreUnavailable too, and takes the link down: scripts
        and keys are ours alone, so an error means a store that cannot be used.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Reply]] = loop.create_future()
        if not self._is_up:
            answer.set_exception(StoreUnavailable("down"))
            answer.exception()  # looked at: whoever never awaits it hears no complaint
            return answer
        self._asked.append(_Asked(commands, answer))
        self._wanted.set()
        limit_s = self._deadline_s if deadline_s is None else deadline_s
        self._watch(answer, limit_s, _LENGTHENED)
        return answer

    async def call(self, command: Command, deadline_s: float | None = None) -> Reply:
        """One command, one reply. Raises StoreUnavailable."""
        return (await self.ask((command,), deadline_s))[0]

    def _watch(self, answer: asyncio.Future[list[Reply]], limit_s: float, lengthened: int) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + limit_s

        def missed() -> None:
            if answer.done():
                return
            if lengthened and loop.time() - due_s > _LATE_S:
                self._watch(answer, limit_s, lengthened - 1)
            else:
                self._fall(StoreUnavailable("timeout", f"no answer within {limit_s:g} s"))

        timer = loop.call_later(limit_s, missed)
        answer.add_done_callback(lambda _: timer.cancel())

    async def _carry_on(self) -> None:
        while True:
            await self._wanted.wait()
            batch = [self._asked.popleft() for _ in range(min(_BATCH, len(self._asked)))]
            if not self._asked:
                self._wanted.clear()
            self._under_way = [asked for asked in batch if not asked.answer.cancelled()]
            if not self._under_way:
                continue
            try:
                replies = await self._wire.carry([command for asked in self._under_way for command in asked.commands])
            except StoreUnavailable as error:
                self._fall(error)
                return
            if not self._hand_out(replies):
                return

    def _hand_out(self, replies: list[Reply]) -> bool:
        for reply in replies:
            if isinstance(reply, ErrorReply):
                self._fall(StoreUnavailable("refused", f"{reply.code} {reply.message}"))
                return False
        at = 0
        for asked in self._under_way:
            own = replies[at : at + len(asked.commands)]
            at += len(asked.commands)
            if not asked.answer.done():
                asked.answer.set_result(own)
        self._under_way = []
        return True

    def _fall(self, error: StoreUnavailable) -> None:
        """Go down: everything that waits fails now."""
        if not self._is_up:
            return
        self._is_up = False
        self._wanted.clear()
        waiting = [*self._under_way, *self._asked]
        self._under_way = []
        self._asked.clear()
        if self._carrier is not None and self._carrier is not asyncio.current_task():
            self._carrier.cancel()
        for asked in waiting:
            if not asked.answer.done():
                asked.answer.set_exception(StoreUnavailable(error.reason, error.detail))
                asked.answer.exception()
        self._on_down(error)

    async def _end_carrier(self) -> None:
        carrier, self._carrier = self._carrier, None
        if carrier is None:
            return
        carrier.cancel()
        await asyncio.wait((carrier,))
