"""``ports.Upstream`` put together: registry, transport, watchers, retry budget, and the beliefs about caches.

What happens to requests teaches faster than probes do: see ``outcomes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.errors import BackendFailed, BackendLost, BackendTimeout, BackendUnreachable, NotTaken
from gateway.ports import Account, Client, Clock, UpstreamRequest
from gateway.routing.beliefs import Beliefs
from gateway.routing.holding import Holding, Holdings, RouteKey
from gateway.routing.index import Room
from gateway.types import BackendName, BackendView, EngineKind, RequestCost
from gateway.upstream.discover import ProbeClients
from gateway.upstream.fleet import Fleet
from gateway.upstream.judge import Judge
from gateway.upstream.kv_events.service import Followed, KvEvents
from gateway.upstream.membership import FleetFacts, Membership, Tell, silent
from gateway.upstream.outcomes import Outcomes
from gateway.upstream.registry import Backend, Registry
from gateway.upstream.retry import RetryBudget
from gateway.upstream.settings import Found, UpstreamSettings
from gateway.upstream.tls import TlsContexts
from gateway.upstream.transport.exchange import Transport
from gateway.upstream.transport.response import EngineResponse
from gateway.upstream.transport.socket import EngineSocket

__all__ = ["FleetFacts", "UpstreamService"]


class UpstreamService:
    """Owns one connection pool, a watching task per backend and one per source; lives in one loop, start to stop."""

    def __init__(self, settings: UpstreamSettings, clock: Clock, tell: Tell = silent) -> None:
        self._settings = settings
        self._clock = clock
        self._registry = Registry(settings)
        self._judge = Judge(self._registry, settings.outliers, tell)
        self._outcomes = Outcomes(clock, self._judge, settings.rest_limit_s, self._nudge, self._returned)
        contexts = TlsContexts()
        self._transport = Transport(settings, contexts)
        self._budget = RetryBudget(settings.retry_ratio, settings.retry_floor_per_s)
        self._kv = None if settings.kv_events is None else KvEvents(settings.kv_events, self._publishing)
        self._beliefs = Beliefs(settings.index_entries, self._kv)
        self._probes = ProbeClients(settings.probe_timeout_s, contexts)
        self._fleet = Fleet(settings, self._registry, self._probes, clock, self._forget)
        self._membership = Membership(settings.backends, settings.sources, self._take, tell)
        self.on_images: Callable[[BackendName, int, Sequence[bytes], Sequence[int]], None] | None = None

    async def start(self) -> None:
        """Open the pool, ask sources and backends (each at most ``discovery_timeout_s``), then keep watching.

        Raises ValueError for certificate files that cannot be used.
        """
        await self._transport.open()
        members = await self._membership.start(self._settings.discovery_timeout_s)
        self._transport.admit(members)
        await self._fleet.start(members)
        self._membership.go_on()
        if self._kv is not None:
            self._kv.start()

    async def stop(self) -> None:
        await self._membership.close()
        await self._fleet.close()
        if self._kv is not None:
            await self._kv.stop()
        await self._probes.close()
        await self._transport.close()

    def _take(self, members: Found) -> None:
        known = {each.name for each in self._registry}
        self._transport.admit(members)
        self._fleet.take(members)
        for backend in self._registry:
            if backend.name not in known:
                backend.standing.joined(self._clock.now_s())

    def fleet(self) -> FleetFacts:
        """How sources of backends stand and what changed; cheap, no I/O."""
        now_s = self._clock.now_s()
        return FleetFacts(
            self._membership.states(),
            self._fleet.joined,
            self._fleet.left,
            {each.name: each.standing.breaker.state(now_s) for each in self._registry},
            sum(each.wires.cut_count for each in self._registry),
            self._judge.ejections,
        )

    def views(self) -> Sequence[BackendView]:
        """Everything known of all backends now, health and load included; cheap, no I/O."""
        return self._registry.views(self._clock.now_s())

    def helpers(self) -> Sequence[BackendView]:
        """The same of those that take no requests: encoders and prefill."""
        return self._registry.helpers(self._clock.now_s())

    def everybody(self) -> Sequence[BackendView]:
        """All backends, for those who watch; those that left and still answer requests are shown as draining."""
        further = (*self.helpers(), *self._registry.leaving(self._clock.now_s()))
        return (*self.views(), *further) if further else self.views()

    def tell_room(self, look: Callable[[], None]) -> None:
        """Call ``look`` whenever a prompt may be computed, where that is limited."""
        fixed = self._settings.backends
        if self._settings.sources or any(backend.max_prefill_tokens is not None for backend in fixed):
            self._registry.on_change = look

    def open_account(self, backend: BackendName, cost: RequestCost) -> Account:
        return self._registry[backend].accounts.open(cost, self._clock.now_s())

    async def forward(self, backend: BackendName, request: UpstreamRequest) -> EngineResponse:
        """Send once. Raises NotTaken (may go elsewhere), BackendLost, BackendTimeout. Never resends by itself."""
        target = self._target(backend)
        self._budget.deposit()
        sent_s = self._outcomes.sent(target)
        try:
            response = await self._transport.forward(target, request)
        except (NotTaken, BackendLost, BackendTimeout) as failure:
            self._outcomes.failed(target, failure)
            raise
        self._outcomes.answered(target, response, sent_s, request.cost)
        return response

    async def stream(
        self, backend: BackendName, request: UpstreamRequest, client: Client, limit_bytes: int
    ) -> EngineResponse:
        """Send a body while it is read from the client (pass-through); ``request.body`` is empty.

        Raises besides: BackendUnreachable (the client's body was begun, so it cannot go elsewhere), BodyTooLarge.
        """
        target = self._target(backend)
        self._budget.deposit()
        sent_s = self._outcomes.sent(target)
        try:
            response = await self._transport.stream(target, request, client, limit_bytes)
        except (NotTaken, BackendUnreachable, BackendLost, BackendTimeout) as failure:
            self._outcomes.failed(target, failure)
            raise
        self._outcomes.answered(target, response, sent_s, None)
        return response

    async def open_socket(
        self, backend: BackendName, request: UpstreamRequest, subprotocols: Sequence[str], limit_bytes: int
    ) -> EngineSocket:
        """Open a WebSocket, once. Raises NotTaken, BackendTimeout, BackendFailed (it answered with something else)."""
        target = self._target(backend)
        self._budget.deposit()
        self._outcomes.sent(target)
        try:
            socket = await self._transport.open_socket(target, request, subprotocols, limit_bytes)
        except (NotTaken, BackendLost, BackendTimeout) as failure:
            self._outcomes.failed(target, failure)
            raise
        except BackendFailed:
            self._outcomes.opened(target)  # it answered, if not with what was asked for
            raise
        self._outcomes.opened(target)
        return socket

    def may_retry(self, reason: str = "") -> bool:
        """Take one resend out of the retry budget; ``False`` when it is spent.

        After a failed connection to one backend, another that is known to be well costs nothing: nobody had any work
        from the first, and the budget is to keep a failing fleet from work that is done twice.
        """
        now_s = self._clock.now_s()
        if reason == "connect" and any(view.healthy and not view.draining for view in self._registry.views(now_s)):
            return True
        return self._budget.take(now_s)

    async def look_ahead(self, key: RouteKey) -> None:
        """Find out now what ``holdings`` will be asked for this content, where that takes long."""
        if self._kv is not None:
            await self._kv.look_ahead(key)

    @property
    def kv_events(self) -> KvEvents | None:
        """Who is followed, for the metrics; ``None`` where nobody may be."""
        return self._kv

    def holdings(self, key: RouteKey) -> Holdings:
        """What backends hold of this content, as believed or as known."""
        return self._beliefs.holdings(key)

    def learn(self, backend: BackendName, key: RouteKey) -> None:
        """The backend is given this content now; what fits into its caches is believed to stay there."""
        if not key.images and not key.chain:
            return
        view = self._registry[backend].view(self._clock.now_s())
        self._beliefs.learn(backend, key, Room(view.encoder_cache_tokens, view.kv_capacity_tokens))
        if self.on_images is not None and key.images:
            self.on_images(backend, key.scope, key.images, key.tokens)

    def hear(self, backend: str, scope: int, images: Sequence[tuple[bytes, int]]) -> None:
        """Another replica gave these images, with their tokens, to this backend."""
        name = BackendName(backend)
        # By name: a beat of fifty replicas names thousands of backends, and to look through a thousand each time takes
        # the loop for seconds.
        if name not in self._registry:
            return
        view = self._registry[name].view(self._clock.now_s())
        if view.healthy:
            key = RouteKey(tuple(digest for digest, _ in images), (), tuple(each for _, each in images), scope=scope)
            self._beliefs.hear(view.name, key, Room(view.encoder_cache_tokens, view.kv_capacity_tokens))

    def correct(self, backend: BackendName, believed: Holding, cached_tokens: int) -> None:
        """The backend said how much of the prompt it had held, where ``believed`` was expected."""
        self._beliefs.correct(backend, believed, cached_tokens)

    def learn_pace(self, backend: BackendName, tokens: int, patches: int, first_token_s: float) -> None:
        """A first token came after so long, behind so much work."""
        self._registry[backend].learn_pace(tokens, patches, first_token_s)

    def _publishing(self) -> Iterator[Followed]:
        """Backends with the publishers that can be heard: those that wait for us, and the others if we listen."""
        listen = self._settings.kv_events is not None and self._settings.kv_events.listen is not None
        for view in self.views():
            sources = tuple(source for source in view.kv_event_sources if source.listens or listen)
            if sources and view.engine is not EngineKind.GENERIC:
                seed = self._registry[view.name].settings.kv_hash_seed
                yield Followed(view.name, view.engine, sources, seed)

    def _returned(self, backend: Backend) -> None:
        """A request found a backend that had been down: most likely another process, with empty caches."""
        self._forget(backend.name)
        self._nudge(backend, restarted=True)

    def _forget(self, name: BackendName) -> None:
        self._beliefs.forget(name)
        self._judge.forget(name)

    def _nudge(self, backend: Backend, *, restarted: bool = False) -> None:
        self._fleet.nudge(backend.name, restarted=restarted)

    def _target(self, name: BackendName) -> Backend:
        """Raises NotTaken for one that left meanwhile and had no request of ours."""
        try:
            return self._registry[name]
        except KeyError:
            raise NotTaken("connect", f"{name} has left") from None
