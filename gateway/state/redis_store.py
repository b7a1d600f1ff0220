"""`quota.store.Store` in a shared store: a script for each step, one round trip for each.

Decided here: what is sent and when. Reservations are named ``replica:number``. Time is the server's own, the same for
all replicas whatever their clocks say; a test that needs to move time brings it (``own_clock=False``). Ends are
collected until the loop comes round or the next take goes out, so that many of one tenant are one script, off every
request's path. A take that is cancelled while it is under way is undone as soon as its answer is there.

Leases that are over end when somebody asks the tenant's budgets next. What this replica has open is remembered here
too, for a settlement must know its tenant, and what is over by the time of the last answer has ended, as it has in the
store. Not decided here: what happens when no answer comes (``shared``); every answer may be StoreUnavailable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from gateway.quota.claim import Charge, Claim, Hold, ReservationId
from gateway.quota.gcra import MICROSECONDS
from gateway.quota.store import Denied, Granted
from gateway.state.scripts import FINISH, RENEW, SWEEP, TAKE, tenant_keys
from gateway.state.wire import Argument, Command, Reply, StoreUnavailable
from gateway.types import TenantId

# Commands, and how long an answer may take (None: as long as a request may wait for it).
Ask = Callable[[Sequence[Command], float | None], "asyncio.Future[list[Reply]]"]
_End = tuple[list[Argument], "asyncio.Future[bool]"]


class RedisStore:
    """See the module. ``replica`` must be unique among all that share the store."""

    def __init__(
        self, ask: Ask, *, prefix: str, replica: str, lease_s: float, aside_s: float = 1.0, own_clock: bool = True
    ) -> None:
        self._ask = ask
        self._prefix = prefix
        self._replica = replica
        self._lease_us = int(lease_s * MICROSECONDS)
        self._aside_s = aside_s  # for what no request waits for
        self._own_clock = own_clock
        self._open: dict[ReservationId, tuple[TenantId, int]] = {}  # tenant, end of the lease
        self._under_way: dict[ReservationId, TenantId] = {}
        self._ends: dict[TenantId, list[_End]] = {}
        self._ends_now_us = 0
        self._is_flush_due = False
        self.expired_count = 0

    @property
    def under_way(self) -> dict[ReservationId, TenantId]:
        """Takes whose answers are not there yet."""
        return self._under_way

    def name(self, reservation: ReservationId) -> str:
        """What the store calls it."""
        return f"{self._replica}:{reservation}"

    # --- taking -----------------------------------------------------------------------------------------------------

    async def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Granted | Denied:
        """One round trip. Raises StoreUnavailable; the take may then have been carried out or not."""
        if reservation in self._open or reservation in self._under_way:
            raise ValueError(f"reservation {reservation} is open already")
        self.flush()
        asked = self._ask((self._take_command(claim, reservation, now_us),), None)
        self._under_way[reservation] = claim.tenant
        asked.add_done_callback(lambda _: self._under_way.pop(reservation, None))
        try:
            (reply,) = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(partial(self._abandon, claim, reservation))
            raise
        return self._taken(claim, reservation, reply)

    def _take_command(self, claim: Claim, reservation: ReservationId, now_us: int) -> Command:
        words: list[Argument] = [self._time(now_us), self._lease_us, self.name(reservation), len(claim.holds)]
        for hold in claim.holds:
            words += (hold.unit.value, hold.amount, "" if hold.limit is None else hold.limit)
        words.append(len(claim.charges))
        for charge in claim.charges:
            words += (bucket_of(charge), charge.cost_us, charge.rate.capacity_us)
        return Command.run(TAKE, tenant_keys(self._prefix, claim.tenant), *words)

    def _taken(self, claim: Claim, reservation: ReservationId, reply: Reply) -> Granted | Denied:
        verdict, *numbers = whole_numbers(reply)
        if verdict == 2:
            raise ValueError(f"reservation {reservation} is open already")
        now_us, expired, *rest = numbers
        self.expired_count += expired
        self._forget(now_us)
        if verdict == 1:
            self._open[reservation] = (claim.tenant, now_us + self._lease_us)
            return Granted(tuple(rest), now_us)
        kind, place, wait_us, in_use, *tats_us = rest
        limit: Hold | Charge = claim.holds[place - 1] if kind == 1 else claim.charges[place - 1]
        return Denied(limit, wait_us, in_use, tuple(tats_us), now_us)

    def _abandon(self, claim: Claim, reservation: ReservationId, asked: asyncio.Future[list[Reply]]) -> None:
        """The answer to a take that nobody waits for any more: what it took goes back, charges and all."""
        if asked.cancelled() or asked.exception() is not None:
            self.undo(claim.tenant, reservation)
        elif isinstance(self._taken(claim, reservation, asked.result()[0]), Granted):
            self.end(reservation, "void", (), 0)

    # --- ending -----------------------------------------------------------------------------------------------------

    async def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> bool:
        return await self.end(reservation, "settle", costs_us, now_us)

    async def release(self, reservation: ReservationId, now_us: int) -> bool:
        return await self.end(reservation, "release", (), now_us)

    def end(self, reservation: ReservationId, kind: str, costs_us: Sequence[int], now_us: int) -> asyncio.Future[bool]:
        """Put an end among those that go out next; nobody need wait for it. ``kind``: see finish.lua."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[bool] = loop.create_future()
        found = self._open.pop(reservation, None)
        if found is None:
            ended.set_result(False)
            return ended
        if not self._is_flush_due:
            self._is_flush_due = True
            loop.call_soon(self.flush)
        words: list[Argument] = [self.name(reservation), kind, len(costs_us), *costs_us]
        self._ends.setdefault(found[0], []).append((words, ended))
        self._ends_now_us = now_us
        return ended

    def undo(self, tenant: TenantId, reservation: ReservationId) -> None:
        """A take whose answer never came and that shall not be: goes out with the next ends."""
        self._open[reservation] = (tenant, 0)
        self.end(reservation, "void", (), 0)

    def adopt(self, tenant: TenantId, reservations: Iterable[ReservationId], store_now_us: int) -> None:
        """The store is being told of these as open (``telling``): they are ended and renewed from now on as any."""
        for reservation in reservations:
            self._open.pop(reservation, None)
            self._open[reservation] = (tenant, store_now_us + self._lease_us)

    def drop(self, reservation: ReservationId) -> None:
        """Forget one that ended while the store was away; that it is not open any more will tell it (``telling``)."""
        self._open.pop(reservation, None)

    def flush(self) -> None:
        """Send the ends that were collected, and those that were sent before without an answer."""
        self._is_flush_due = False
        if not self._ends:
            return
        ends, self._ends = self._ends, {}
        time = self._time(self._ends_now_us)
        commands = [
            Command.run(FINISH, tenant_keys(self._prefix, tenant), time, *(w for words, _ in of for w in words))
            for tenant, of in ends.items()
        ]
        self._ask(commands, self._aside_s).add_done_callback(partial(self._ended, ends))

    def _ended(self, ends: dict[TenantId, list[_End]], asked: asyncio.Future[list[Reply]]) -> None:
        """An end whose answer never came is sent again with the next ones: only the first of two counts."""
        error = StoreUnavailable("closed") if asked.cancelled() else asked.exception()
        for at, (tenant, of) in enumerate(ends.items()):
            if error is not None:
                self._ends.setdefault(tenant, [])[:0] = [(words, ended) for words, ended in of]
            flags = [] if error is not None else whole_numbers(asked.result()[at])
            for place, (_, ended) in enumerate(of):
                if ended.done():
                    continue
                if error is None:
                    ended.set_result(flags[place] == 1)
                else:
                    ended.set_exception(error)
                    ended.exception()  # looked at: most callers do not wait for an end

    # --- leases -----------------------------------------------------------------------------------------------------

    async def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Sequence[ReservationId]:
        self.flush()
        gone = {reservation for reservation in reservations if reservation not in self._open}
        by_tenant = self._by_tenant(reservation for reservation in reservations if reservation not in gone)
        if by_tenant:
            commands = [
                Command.run(RENEW, tenant_keys(self._prefix, tenant), self._time(now_us), self._lease_us,
                            *map(self.name, names))
                for tenant, names in by_tenant.items()
            ]  # fmt: skip
            for (tenant, names), reply in zip(by_tenant.items(), await self._ask(commands, self._aside_s), strict=True):
                server_us, *places = whole_numbers(reply)
                ended = {names[place - 1] for place in places}
                gone |= ended
                for reservation in names:
                    if self._open.pop(reservation, None) is not None and reservation not in ended:
                        self._open[reservation] = (tenant, server_us + self._lease_us)
        return tuple(reservation for reservation in reservations if reservation in gone)

    async def expire(self, now_us: int) -> Sequence[ReservationId]:
        """What of this replica's has ended; other replicas' leases of the same tenants end with it."""
        self.flush()
        by_tenant = self._by_tenant(self._open)
        ended: list[ReservationId] = []
        if by_tenant:
            sweeps = [Command.run(SWEEP, tenant_keys(self._prefix, t), self._time(now_us)) for t in by_tenant]
            for reply in await self._ask(sweeps, self._aside_s):
                server_us, over = _swept(reply)
                self.expired_count += over
                ended += self._forget(server_us)
        return tuple(ended)

    def _time(self, now_us: int) -> int:
        return 0 if self._own_clock else now_us

    def _by_tenant(self, reservations: Iterable[ReservationId]) -> dict[TenantId, list[ReservationId]]:
        found: dict[TenantId, list[ReservationId]] = {}
        for reservation in reservations:
            found.setdefault(self._open[reservation][0], []).append(reservation)
        return found

    def _forget(self, now_us: int) -> list[ReservationId]:
        """Equal leases end in the order of their beginning, so looking stops at the first that lasts."""
        over: list[ReservationId] = []
        for reservation, (_, until_us) in self._open.items():
            if until_us > now_us:
                break
            over.append(reservation)
        for reservation in over:
            del self._open[reservation]
        return over


def bucket_of(charge: Charge) -> str:
    """What a charge's bucket is called in the store."""
    return f"{charge.unit.value}/{charge.rate.period_s}"


def whole_numbers(reply: Reply) -> list[int]:
    """A reply that must be a list of numbers. Raises StoreUnavailable for anything else."""
    if isinstance(reply, list):
        numbers = [entry for entry in reply if isinstance(entry, int)]
        if numbers and len(numbers) == len(reply):
            return numbers
    raise StoreUnavailable("refused", f"an answer that is none: {reply!r}")


def _swept(reply: Reply) -> tuple[int, int]:
    if isinstance(reply, list) and reply and isinstance(reply[0], int):
        return reply[0], len(reply) - 1
    raise StoreUnavailable("refused", f"an answer that is none: {reply!r}")
