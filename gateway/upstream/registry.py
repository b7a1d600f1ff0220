"""Every backend's one record, and the immutable snapshots that routing sees of it.

A record gathers what was configured, what discovery found, how it stands and what our own requests ask of it. Views are
rebuilt only for backends that changed, and once a second for what changes by itself (time limits of marks, the age of
the last load report).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from gateway.routing.ask import Profile
from gateway.routing.pace import TokenPace
from gateway.types import BackendName, BackendRole, BackendView, EngineKind
from gateway.upstream.accounts import Load
from gateway.upstream.engines import engine_of
from gateway.upstream.engines.contract import Engine, EngineFacts, EngineLoad
from gateway.upstream.overrides import told
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.standing import Standing
from gateway.upstream.transport.wires import Wires

_USUAL = Profile()
SEED_PACE = TokenPace(_USUAL.prefill_s_per_token, _USUAL.encode_s_per_patch)
_VIEW_AGE_LIMIT_S = 1.0
# 1 to 3 ms of an API server's process each, measured on vLLM 0.32.0: it walks through all of its metrics.
_REPORT_EVERY_S = 0.25


class Backend:
    """One backend's record. Every method that changes what a view shows says so itself.

    ``is_alone`` tells whether no other backend can take its requests now.
    """

    def __init__(
        self,
        settings: BackendSettings,
        limits: UpstreamSettings,
        changed: Callable[[], None],
        is_alone: Callable[[Backend, float], bool] = lambda _backend, _now_s: False,
    ) -> None:
        self.settings = settings
        self.name = settings.backend_name
        self.root = settings.root
        self.engine: Engine = engine_of(
            EngineKind.GENERIC if settings.engine == "auto" else EngineKind(settings.engine)
        )
        self.discovered = False
        self.standing = Standing(limits)
        self.accounts = Load(self._touch)
        self.pace = SEED_PACE
        self._scraped_requests: int | None = None
        self.wires = Wires()
        self._is_alone = is_alone
        self._facts = EngineFacts()
        self._told = told(settings, self._facts)
        self._load = EngineLoad()
        self._loaded_s: float | None = None
        self._report_due_s = 0.0
        self._changed = changed
        self._view: BackendView | None = None

    def _touch(self) -> None:
        self._view = None
        self._changed()

    @property
    def up(self) -> bool:
        return self.standing.up

    @property
    def kinship(self) -> tuple[object, ...]:
        """What backends must have in common to stand in for each other and to be compared."""
        return (self.settings.role, self._facts.models)

    def configure(self, settings: BackendSettings) -> None:
        """Other settings of the same engine; what was learnt of it stays."""
        if settings != self.settings:
            if settings.engine not in ("auto", self.engine.kind):
                self.engine = engine_of(EngineKind(settings.engine))
            self.settings = settings
            self._told = told(settings, self._facts)
            self._touch()

    def learn_facts(self, engine: Engine, facts: EngineFacts) -> None:
        if self.discovered and facts.model_root == self._facts.model_root:
            facts = _completed(facts, self._facts)
        self.engine = engine
        self.discovered = True
        self._facts = facts
        self._told = told(self.settings, facts)
        self._touch()

    def asks_report(self, now_s: float) -> bool:
        """Whether this request is to bring a load report back: a few a second do, since each costs the engine 2 ms."""
        if not self.engine.reports_load or now_s < self._report_due_s or (self._told.ranks or 1) > 1:
            return False
        self._report_due_s = now_s + _REPORT_EVERY_S
        return True

    def learn_report(self, header: str, now_s: float) -> None:
        """What a response's header tells of its load; the rest of the last load stays."""
        load = self.engine.report(header)
        if load is not None:
            self.learn_load(replace(self._load, waiting=load.waiting, kv_use_ratio=load.kv_use_ratio), now_s)

    def learn_load(self, load: EngineLoad, now_s: float) -> None:
        self._load = load
        self._loaded_s = now_s
        self._scraped_requests = self.accounts.requests
        self._touch()

    def learn_pace(self, tokens: int, patches: int, seconds: float) -> None:
        """A first token came after so long, behind so much work."""
        self.pace = self.pace.learn(tokens, patches, seconds)

    def mark_up(self, now_s: float) -> bool:
        """It answered. Tells whether it was down, which means that it may have restarted."""
        was_up = self.standing.up
        if self.standing.came_up(now_s):
            self._touch()
        return not was_up

    def mark_down(self) -> None:
        """It certainly does not listen."""
        if self.standing.went_down():
            self._touch()

    def missed(self) -> None:
        """A probe failed in a way that may be chance."""
        if self.standing.missed():
            self._touch()

    def mark_draining(self, now_s: float) -> None:
        """It said so itself."""
        self.standing.drains(now_s)
        self._touch()

    def probed(self, now_s: float) -> None:
        """A probe went well: reason enough to try a backend whose breaker is open, where there is no other."""
        if not self.standing.breaker.is_closed and self._is_alone(self, now_s):
            self.standing.breaker.half_open(now_s)
            self._touch()

    def refresh(self) -> None:
        """Forget the view: time or the breaker may have changed it."""
        self._touch()

    def view(self, now_s: float) -> BackendView:
        if self._view is None:
            self._view = self._snapshot(now_s)
        return self._view

    def _snapshot(self, now_s: float) -> BackendView:
        settings, load, marks, own = self.settings, self._load, self.standing, self.accounts
        facts, pace = self._told, self.pace if self.pace.samples else None
        own.advance(now_s)
        return BackendView(
            name=self.name,
            url=self.root,
            written_url=settings.url,
            engine=self.engine.kind,
            engine_version=facts.version,
            models=facts.models,
            model_root=facts.model_root,
            healthy=marks.is_healthy(now_s),
            draining=marks.is_draining(now_s),
            vision=facts.vision is not False,
            context_tokens=facts.context_tokens,
            # An encoder has one block, for show.
            kv_capacity_tokens=None if settings.role is BackendRole.ENCODER else facts.kv_capacity_tokens,
            kv_block_tokens=facts.kv_block_tokens,
            max_pixels=facts.max_pixels,
            max_images=facts.max_images,
            prefix_hash=facts.prefix_hash,
            encoder_tokens=settings.encoder_tokens,
            encoder_cache_tokens=facts.encoder_cache_tokens,
            prefill_chunk_tokens=facts.prefill_chunk_tokens,
            api_servers=facts.api_servers,
            ranks=facts.ranks,
            kv_event_sources=facts.kv_event_sources or (),
            prefill_s_per_token=None if pace is None else pace.prefill_s_per_token,
            encode_s_per_patch=None if pace is None else pace.encode_s_per_patch,
            recent_work_tokens=own.recent_work_tokens,
            inflight_requests=own.requests,
            inflight_kv_tokens=own.kv_tokens,
            queued_prefill_tokens=own.prefill_tokens,
            queued_encode_patches=own.encode_patches,
            engine_running=load.running,
            engine_waiting=load.waiting,
            engine_waiting_tokens=load.waiting_tokens,
            kv_use_ratio=load.kv_use_ratio,
            scraped_age_s=None if self._loaded_s is None else max(0.0, now_s - self._loaded_s),
            scraped_inflight_requests=self._scraped_requests,
            returns=marks.returns,
            role=settings.role,
            # Behind a router there is more than one cache.
            takes_ids=settings.takes_ids if settings.lend_affinity is None else bool(settings.takes_ids),
            ramp=marks.ramp(now_s),
            resting=marks.is_resting(now_s),
            image_cache_bytes=settings.image_cache_bytes,
            bootstrap_port=settings.bootstrap_port,
            max_requests=settings.max_requests,
            max_prefill_tokens=settings.max_prefill_tokens,
            priorities=settings.priorities,
        )


def _completed(facts: EngineFacts, known: EngineFacts) -> EngineFacts:
    """A busy engine of the same model may have left a question unanswered this time; what is known still holds."""
    gaps = {
        entry.name: getattr(known, entry.name)
        for entry in fields(facts)
        if getattr(facts, entry.name) is None and getattr(known, entry.name) is not None
    }
    return replace(facts, **gaps) if gaps else facts


class Registry:
    """All backends in the order in which they came; helpers (encoders, prefill) stand apart from the others.

    One that has left takes no new requests and is in no view, but its record stays until its requests are over.
    """

    def __init__(self, settings: UpstreamSettings) -> None:
        self._limits = settings
        self._left: dict[BackendName, Backend] = {}
        self._views: tuple[BackendView, ...] | None = None
        self._helpers: tuple[BackendView, ...] = ()
        self.on_change: Callable[[], None] | None = None
        self._built_s = 0.0
        self._ejected: set[BackendName] = set()
        self._lives = 0
        self._backends: dict[BackendName, Backend] = {}
        for entry in settings.backends:
            self.join(entry)

    def _invalidate(self) -> None:
        self._views = None
        if self.on_change is not None:
            self.on_change()

    def __iter__(self) -> Iterator[Backend]:
        """The members. A copy: the admin thread looks, too, while backends come and go."""
        return iter(tuple(self._backends.values()))

    def __contains__(self, name: BackendName) -> bool:
        return name in self._backends

    def __getitem__(self, name: BackendName) -> Backend:
        """A member, or one that has left while requests of ours are on it."""
        return self._backends.get(name) or self._left[name]

    def join(self, settings: BackendSettings) -> Backend:
        """A member, known already or not. One that has left under this name and address comes back as it was."""
        name = settings.backend_name
        known = self._backends.get(name) or self._left.pop(name, None)
        if known is not None and known.root == settings.root:
            known.configure(settings)
        else:
            if known is not None:
                self._count_lives(known)
            known = Backend(settings, self._limits, self._invalidate, self.is_alone)
            known.standing.returns = self._lives
        self._backends[name] = known
        self._invalidate()
        return known

    def leave(self, name: BackendName) -> Backend:
        """No member any more; it stays where ``leaving`` tells of it."""
        backend = self._left[name] = self._backends.pop(name)
        self._count_lives(backend)
        self._invalidate()
        return backend

    def _count_lives(self, gone: Backend) -> None:
        """No backend to come has a number of returns that one before it had: it tells one life from another."""
        self._lives = max(self._lives, gone.standing.returns + 1)

    def forget(self, backend: Backend) -> None:
        """Its last request is over."""
        if self._left.get(backend.name) is backend:
            del self._left[backend.name]

    def leaving(self, now_s: float) -> tuple[BackendView, ...]:
        """Those that have left and still answer requests."""
        return tuple(replace(backend.view(now_s), draining=True) for backend in list(self._left.values()))

    def is_alone(self, backend: Backend, now_s: float) -> bool:
        """Whether no other backend can take its requests now."""
        return not any(
            other is not backend
            and other.kinship == backend.kinship
            and other.standing.is_healthy(now_s)
            and not other.standing.is_draining(now_s)
            for other in self
        )

    def eject(self, name: BackendName, until_s: float) -> None:
        """Leave it alone until then, as long as others can take its requests."""
        self._ejected.add(name)
        self._backends[name].standing.ejected(until_s)
        self._backends[name].refresh()

    def _relieve(self, now_s: float) -> None:
        """End the ejections that would leave nobody, and forget those that are over."""
        for name in list(self._ejected):
            backend = self._backends.get(name)
            if backend is None or not backend.standing.is_ejected(now_s):
                self._ejected.discard(name)
            elif self.is_alone(backend, now_s):
                backend.standing.readmitted(now_s)
                backend.refresh()

    def helpers(self, now_s: float) -> tuple[BackendView, ...]:
        """The backends that do a part of requests which go elsewhere."""
        self.views(now_s)
        return self._helpers

    def views(self, now_s: float) -> tuple[BackendView, ...]:
        """The backends that take requests."""
        if now_s - self._built_s >= _VIEW_AGE_LIMIT_S:
            for backend in self:
                backend.refresh()
            self._built_s = now_s
        if self._views is None:
            if self._ejected:
                self._relieve(now_s)
            everybody = tuple(backend.view(now_s) for backend in self)
            self._helpers = tuple(view for view in everybody if view.role.helps)
            self._views = everybody if not self._helpers else tuple(view for view in everybody if not view.role.helps)
        return self._views
