"""`quota.store.Store` for replicas that share their budgets: in a shared store while it answers, by the book while not.

Decided here: when which of the two decides, and what happens in between. No request ever fails or waits because the
store is away: a take that misses its deadline is decided by the book at once, and so are all others until the store is
back and has been told. Telling and taking travel in one lane in their order, so takes are shared again from the moment
at which the telling is under way. Leases are renewed thrice in their time, in one batch with this replica's own sign of
life; what the store then has forgotten (it was restarted empty, or took this replica for dead) it is told anew.

While only this replica cannot reach the store, the others still see what it held until its leases end, and then share
the whole limit, so at most limit x (1 + 1 / replicas) is in flight; while nobody reaches it, at most the limit, and in
both cases beside that what was open before the store went. Not decided here: shares (``book``), words (``redis_store``,
``telling``), when to try again (``keeper``), waiting in line (``budgets``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.ports import Clock
from gateway.quota.claim import Claim, ReservationId
from gateway.quota.gcra import MICROSECONDS
from gateway.quota.store import Denied, Granted, Maybe
from gateway.state.book import Book
from gateway.state.keeper import Keeper, Say
from gateway.state.redis_store import RedisStore, whole_numbers
from gateway.state.scripts import BEAT, registry_key
from gateway.state.settings import RedisSettings
from gateway.state.telling import Teller
from gateway.state.wire import Command, Reply, StoreUnavailable, Wire
from gateway.types import TenantId

# operation, result ("ok" or the reason), seconds
Observe = Callable[[str, str, float], None]
_RENEWALS_PER_LEASE = 3
_LEAVING_S = 0.5
_STRANGERS = (
    "another gateway that shares redis.url has another identity.secret: budgets are shared, images are not recognised, "
    "and keys stored under one are unknown to the other; give all the same, or another redis.prefix"
)


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """For gauges and probes. ``is_degraded``: this replica decides by its share of the limits alone."""

    is_degraded: bool
    replicas: int
    expired_count: int


class SharedStore:
    """See the module. ``replica`` names this process among all that share the store, for as long as it lives."""

    def __init__(
        self,
        wire: Wire,
        settings: RedisSettings,
        clock: Clock,
        jitter: Callable[[], float],
        *,
        replica: str,
        say: Say,
        observe: Observe,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._replica = replica
        self._observe = observe
        self._lease_us = int(settings.lease_s * MICROSECONDS)
        self._replicas = settings.min_replicas
        self._is_shared = self._has_warned = False
        self._say = say
        self._keeper = Keeper(
            wire, clock, jitter, say,
            deadline_s=settings.deadline_s, retry_s=settings.retry_s, restore=self._restore, on_down=self._fell,
        )  # fmt: skip
        self._redis = RedisStore(
            self._ask,
            prefix=settings.prefix,
            replica=replica,
            lease_s=settings.lease_s,
            aside_s=settings.connect_timeout_s,
        )
        self._book = Book()
        self._teller = Teller(self._book, prefix=settings.prefix, replica=replica, lease_us=self._lease_us)
        self._renewing: asyncio.Task[None] | None = None

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin; a store that is away now is no reason to wait longer than for one connection."""
        await self._keeper.start(self._settings.connect_timeout_s)
        self._renewing = asyncio.get_running_loop().create_task(self._keep_renewing())

    async def stop(self) -> None:
        """Give back what ended, leave the registry, close."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait((self._renewing,))
        if self._is_shared:
            self._redis.flush()
            leave = Command(("ZREM", registry_key(self._settings.prefix), self._replica))
            await asyncio.wait((self._keeper.link.ask((leave,), _LEAVING_S),))
        await self._keeper.stop()

    def facts(self) -> SharedFacts:
        """Plain numbers, to be read from any thread."""
        return SharedFacts(not self._is_shared, self._replicas, self._redis.expired_count)

    # --- the store ----------------------------------------------------------------------------------------------------

    def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Maybe[Granted | Denied]:
        if self._is_shared:
            return self._take_shared(claim, reservation)
        return self._book.take(claim, reservation, now_us, self._replicas)

    async def _take_shared(self, claim: Claim, reservation: ReservationId) -> Granted | Denied:
        try:
            outcome = await self._redis.take(claim, reservation, 0)
        except StoreUnavailable as error:
            was_sent = error.reason != "down"
            decided = self._book.take(claim, reservation, self._now_us(), self._replicas, is_unsure=was_sent)
            if was_sent and isinstance(decided, Denied):
                self._redis.undo(claim.tenant, reservation)
            return decided
        self._book.saw(claim, outcome)
        if isinstance(outcome, Granted):
            self._book.opened(reservation, claim, outcome.tats_us)
        return outcome

    def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> bool:
        return self._end(reservation, costs_us, now_us)

    def release(self, reservation: ReservationId, now_us: int) -> bool:
        return self._end(reservation, None, now_us)

    def _end(self, reservation: ReservationId, costs_us: Sequence[int] | None, now_us: int) -> bool:
        if not self._is_shared:
            self._redis.drop(reservation)
            return self._book.end(reservation, costs_us, now_us)
        if self._book.closed(reservation) is None:
            return False
        self._redis.end(reservation, "release" if costs_us is None else "settle", costs_us or (), now_us)
        return True

    def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Sequence[ReservationId]:  # noqa: ARG002  # the protocol's
        """Leases are renewed from here; the answer says which had ended."""
        return tuple(reservation for reservation in reservations if not self._book.is_open(reservation))

    def expire(self, now_us: int) -> Sequence[ReservationId]:  # noqa: ARG002  # the protocol's
        """Nothing of a living replica ever expires."""
        return ()

    # --- coming and going ---------------------------------------------------------------------------------------------

    def _fell(self) -> None:
        self._is_shared = False

    async def _restore(self) -> None:
        """Register, then tell everything. Takes are shared from the moment at which the telling is under way."""
        store_now_us = await self._beat()
        await self._compare_secrets()
        self._redis.flush()
        tenants = self._book.tenants_to_tell(store_now_us)
        telling = self._tell(tenants, store_now_us)
        self._is_shared = True
        await telling

    async def _compare_secrets(self) -> None:
        """Warn where another replica has another secret, as the names of both tell behind a dot."""
        own = self._replica.partition(".")[2]
        if not own:
            return
        listed = Command(("ZRANGE", registry_key(self._settings.prefix), 0, -1))
        (names,) = await self._ask((listed,), self._settings.connect_timeout_s)
        others = [name for name in names if isinstance(name, bytes)] if isinstance(names, list) else []
        is_strange = any(name.decode().partition(".")[2] not in ("", own) for name in others)
        if is_strange and not self._has_warned:
            self._has_warned = True
            self._say("secrets_differ", reason=_STRANGERS)

    def _tell(self, tenants: Sequence[TenantId], store_now_us: int) -> asyncio.Future[None]:
        """Sent at once; the future ends when it was heard, or with StoreUnavailable."""
        commands: list[Command] = []
        told: list[tuple[TenantId, int]] = []
        for tenant in tenants:
            waiting = [each for each, of in self._redis.under_way.items() if of == tenant]
            own, number = self._teller.commands(tenant, waiting)
            commands += own
            told.append((tenant, number))
            self._redis.adopt(tenant, self._book.page(tenant).open, store_now_us)
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not commands:
            heard.set_result(None)
            return heard
        asked = self._ask(commands, self._settings.connect_timeout_s)

        def note(answer: asyncio.Future[list[Reply]]) -> None:
            error = StoreUnavailable("closed") if answer.cancelled() else answer.exception()
            if error is None:
                for tenant, number in told:
                    self._book.heard(tenant, number)
            if heard.done():
                return
            if error is None:
                heard.set_result(None)
            else:
                heard.set_exception(error)
                heard.exception()

        asked.add_done_callback(note)
        return heard

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._settings.lease_s / _RENEWALS_PER_LEASE)
            if not self._is_shared:
                continue
            try:
                await self._renew()
            except StoreUnavailable:
                continue  # the keeper sees to it

    async def _renew(self) -> None:
        store_now_us = await self._beat()
        lost = self._book.tenants_of(await self._redis.renew(self._book.open, 0))
        if lost and self._is_shared:
            await self._tell(lost, store_now_us)

    async def _beat(self) -> int:
        """A sign of life; learns how many replicas there are, and the store's time."""
        command = Command.run(
            BEAT, (registry_key(self._settings.prefix),), self._replica, self._lease_us
        )  # fmt: skip
        (reply,) = await self._ask((command,), self._settings.connect_timeout_s)
        store_now_us, replicas = whole_numbers(reply)
        self._book.offset_us = store_now_us - self._now_us()
        self._replicas = max(replicas, self._settings.min_replicas)
        return store_now_us

    def _now_us(self) -> int:
        return int(self._clock.now_s() * MICROSECONDS)

    def _ask(self, commands: Sequence[Command], deadline_s: float | None = None) -> asyncio.Future[list[Reply]]:
        asked = self._keeper.link.ask(commands, deadline_s)
        script = commands[0].script if commands else None
        operation = "other" if script is None else script.name
        began_s = self._clock.now_s()

        def note(answer: asyncio.Future[list[Reply]]) -> None:
            error = None if answer.cancelled() else answer.exception()
            result = error.reason if isinstance(error, StoreUnavailable) else "ok"
            self._observe(operation, result, self._clock.now_s() - began_s)

        asked.add_done_callback(note)
        return asked
