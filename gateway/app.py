"""The composition root: settings become objects, objects become a running gateway; nothing imports this but the CLI.

Decided here: what is wired to what, and the order of starting and stopping. Not decided here: anything a part decides,
what a reload is (``reloading``). Start order: log, media workers, Redis, upstream discovery, data port, admin
port. Stop order: unready, settle, listeners, exchanges in flight, upstream, workers, Redis, admin port, log.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gateway import __version__
from gateway.api.admin import AdminServer, AdminView
from gateway.api.client import HttpClient
from gateway.api.handler import DataHandler, Edge
from gateway.api.models import models_answer
from gateway.api.websocket import WebSocketClient
from gateway.assembly.advising import warn
from gateway.assembly.gauges import Canary, Moment, backend_notes, gauges, hint_counter, store_observer
from gateway.assembly.listening import cors_of, data_server, extra_routes_of, forwarding_of, tls_of, watched_files
from gateway.assembly.loop import MonotonicClock, UnawaitedErrors, on_loop, spare_the_collector
from gateway.assembly.page import Page, explained
from gateway.assembly.recording import open_spans, recorder_of, tally_of
from gateway.assembly.reloading import Reloader
from gateway.assembly.room import room_on
from gateway.assembly.sharing import open_hints, open_shared_cache, own_budgets, shared_budgets, shared_notes
from gateway.assembly.wiring import (
    deployment_key,
    fetch_settings,
    has_limits,
    kv_fill,
    load_world,
    media_settings,
    tokens_of,
    upstream_settings,
)
from gateway.config.policies import Parsed
from gateway.config.settings import Settings
from gateway.config.sources import masked
from gateway.config.watch import fingerprint, watch
from gateway.dialects import Dialect
from gateway.errors import GatewayError
from gateway.explain import answer_estimate
from gateway.ferry import ferry
from gateway.handover import answer_prepared
from gateway.journey import travel
from gateway.media.fetch import Fetcher
from gateway.media.job import TaskFacts
from gateway.media.priority import take_short_turns
from gateway.media.service import MediaService
from gateway.policy.visible import visible_models
from gateway.ports import Body
from gateway.record import RequestHead
from gateway.splice.skeleton import OFF_LOOP, Skeleton, cut
from gateway.stages.exchange import Ports, World, conclude, new_record
from gateway.state.budgets import LocalBudgets
from gateway.talking import talk
from gateway.telemetry.log import JsonLog
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.roll_call import RollCall
from gateway.types import BackendView, TenantId
from gateway.types.paths import Lane
from gateway.upstream.legs import legs_of
from gateway.upstream.service import FleetFacts, UpstreamService


@dataclass(frozen=True, slots=True)
class Listening:
    """The ports the process really listens on."""

    data: int
    admin: int


class Gateway:
    """One gateway process. ``start`` returns the real ports; ``run_until_drained`` serves until asked to leave."""

    def __init__(
        self,
        settings: Settings,
        *,
        key: bytes | None = None,
        reread: Callable[[], Settings] | None = None,
        config_file: Path | None = None,
    ) -> None:
        """Raises PolicyProblems or ValueError (model overrides) for configuration that cannot be used.

        ``reread`` reads the settings anew for a reload, ``config_file`` is watched beside the policies; ``key`` is the
        deployment's where several processes are one gateway.
        """
        self._config_file = config_file
        self._log = JsonLog(settings.log.level, access=settings.log.access)
        self._key = key or deployment_key(settings)
        self._metrics = Metrics()
        self._clock = MonotonicClock()
        self._canary = Canary(self._metrics, self._clock)
        self._inflight: dict[int, tuple[float, str]] = {}
        # One thread: more would only take the interpreter's lock from the loop more often.
        self._cutter = ThreadPoolExecutor(1, "cut")
        self._draining, self._asked_again = asyncio.Event(), asyncio.Event()
        self._tokens = tokens_of(settings, self._on_issuer_failure)
        self._parsed = Parsed()
        self._tls = tls_of(settings.server)
        self._read_files = fingerprint(watched_files(settings, config_file))  # as they were before they are read
        self._reloader = Reloader(settings, self._load, self._log, reread, self._tls.renew if self._tls else None)
        if key is None:
            warn(settings, self.world.policies, os.environ, self._log, time.time())
        self._tasks: list[asyncio.Task[None]] = []
        media = media_settings(settings, self._key)
        self._codec_backend = media.pool.codec_backend
        self._fetcher = Fetcher(fetch_settings(settings))
        self._shared_cache = open_shared_cache(settings, self._clock, self._log)
        self._media = MediaService(media, self._fetcher, on_task=self._on_task, second=self._shared_cache)
        self._upstream = UpstreamService(upstream_settings(settings), self._clock, self._log.event)
        self._shared = shared_budgets(settings, self._clock, self._log, store_observer(self._metrics))
        self._budgets = LocalBudgets(
            self._shared or own_budgets(settings),
            self._clock,
            random.random,
            time.time,
            has_room=room_on(self._upstream.views, kv_fill(settings), limited=has_limits(settings)),
        )
        self._upstream.tell_room(self._budgets.look_again)
        self._hints = open_hints(settings, self._upstream, self._clock, self._log, hint_counter(self._metrics))
        self._spans = open_spans(settings.tracing, self._log)
        self._recorder = recorder_of(
            self._metrics, self._log, self._spans, lambda name: TenantId(name) in self.world.policies.tenants
        )
        self._ports = Ports(
            clock=self._clock,
            media=self._media,
            clips=self._media.clips,
            budgets=self._budgets,
            upstream=self._upstream,
            recorder=self._recorder,
            cut_elsewhere=self._cut_elsewhere,
            aside=asyncio.to_thread,
            legs=legs_of(self._upstream, upstream_settings(settings), self._clock),
        )

    def _load(self, settings: Settings, earlier: World | None) -> World:
        world = load_world(settings, self._key, earlier, self._tokens, self._parsed)
        if self._tls is not None:
            self._tls.check()
        return world

    @property
    def settings(self) -> Settings:
        return self._reloader.settings

    @property
    def world(self) -> World:
        """The snapshot in force; an exchange keeps the one it began with."""
        return self._reloader.world

    # --- serving ------------------------------------------------------------------------------------------------

    async def _cut_elsewhere(self, body: Body) -> Skeleton:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cutter, cut, body.buffer, body.start, body.stop, OFF_LOOP)

    async def _counted(self, client: HttpClient, name: str, work: Awaitable[None]) -> None:
        self._inflight[id(client)] = (self._clock.now_s(), name)
        try:
            await work
        finally:
            del self._inflight[id(client)]

    async def _travel(self, client: HttpClient, dialect: Dialect) -> None:
        await self._counted(client, dialect.name, travel(client, dialect, self._ports, self.world))

    async def _ferry(self, client: HttpClient, name: str, lane: Lane) -> None:
        await self._counted(client, name, ferry(client, name, self._ports, self.world, lane))

    async def _talk(self, client: WebSocketClient, name: str, lane: Lane) -> None:
        work = talk(client, name, self._ports, self.world, lane, self._upstream.open_socket)
        await self._counted(client, name, work)

    async def _leaving(self) -> None:
        await self._draining.wait()
        await asyncio.sleep(self.settings.server.settle_s)

    async def _estimate(self, client: HttpClient, dialect: Dialect) -> None:
        await self._counted(client, "estimate", answer_estimate(client, dialect, self._ports, self.world))

    async def _prepare(self, client: HttpClient, dialect: Dialect) -> None:
        await self._counted(client, "estimate", answer_prepared(client, dialect, self._ports, self.world))

    async def _refuse(self, client: HttpClient, name: str, error: GatewayError) -> None:
        async def fail() -> None:
            raise error

        await conclude(client, self._ports, new_record(client, name, self._clock), fail())

    def _list_models(self, head: RequestHead) -> bytes:
        views, policies = self._upstream.views(), self.world.policies
        tenant = policies.tenants[self.world.admit(head).tenant]
        allowed = cast("tuple[str, ...] | None", tenant.settings["allowed_models"].value)
        served = (name for view in views for name in view.models)
        return models_answer(head, visible_models(allowed, served, policies.aliases, tenant.aliases), views)

    def _edge(self) -> Edge:
        return Edge(
            travel=self._travel,
            ferry=self._ferry,
            estimate=self._estimate,
            prepare=self._prepare,
            refuse=self._refuse,
            list_models=self._list_models,
            is_ready=self._is_ready,
            is_draining=self._draining.is_set,
            slab=self._media.slab,
            body_silence_s=self.settings.server.body_timeout_s,
            forwarding=forwarding_of(self.settings.server),
            cors=cors_of(self.settings.server),
            extra_routes=extra_routes_of(self.settings),
            talk=self._talk,
            leaving=self._leaving,
            trace=None if self._spans is None else self._spans.begin,
        )

    def _on_task(self, task: TaskFacts) -> None:
        self._metrics.observe("pool_wait_seconds", task.wait_s)
        self._metrics.observe("pool_task_seconds", task.task_s, task.operation)

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> Listening:
        """Start everything; returns once requests are served. Raises what a part raises when it cannot start."""
        server = self.settings.server
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(UnawaitedErrors(self._log))
        take_short_turns()
        await self._fetcher.start()
        if self._tokens is not None:
            await self._tokens.start()
        await self._media.start()
        for link in (self._shared_cache, self._hints):
            if link is not None:
                await link.start(self.settings.redis.connect_timeout_s)
        if self._shared is not None:
            await self._shared.start()
        await self._upstream.start()
        self._data = data_server(server, DataHandler(self._edge()), self._tls)
        data_port = await self._data.start()
        self._metrics.sample(
            lambda: gauges(self._moment()), backend=lambda: {view.name for view in self._upstream.everybody()}
        )
        page = Page(self._ports, lambda: self.world, self._moment, self._recorder.recent, data_port, bool(self._tls))
        view = AdminView(
            beat_age_s=self._canary.beat_age_s,
            readiness=self._readiness,
            render_metrics=self._render_metrics,
            config=lambda: masked(self.settings),
            drain=lambda: loop.call_soon_threadsafe(self.ask_drain),
            ask_reload=lambda: on_loop(loop, self.reload()),
            ask_explain=lambda body, headers: on_loop(loop, self._explain(body, headers)),
            token=os.environ.get("VLMGW_ADMIN_TOKEN"),
            notes=lambda: [*backend_notes(self._upstream.everybody()), *shared_notes(self._shared)],
            ui=page.view(loop) if server.admin_page else None,
        )
        self._admin = AdminServer(view, host=server.admin_host, port=server.admin_port)
        admin_port = self._admin.start()
        self._tasks.append(loop.create_task(self._canary.keep_beating()))
        if server.watch_interval_s > 0:
            watching = watch(self._watched, server.watch_interval_s, self.reload, self._read_files)
            self._tasks.append(loop.create_task(watching))
        self._tasks.append(loop.create_task(RollCall(self._log).keep_calling(self._upstream.everybody)))
        spare_the_collector()
        self._log.event(
            "info", "started", version=__version__, data_port=data_port, admin_port=admin_port,
            codec_backend=self._codec_backend, plan_version=self._media.plan_version,
            sandbox=self._media.facts().pool.box.lines(), backends=[view.name for view in self._upstream.everybody()],
        )  # fmt: skip
        return Listening(data_port, admin_port)

    async def run_until_drained(self) -> bool:
        """Serve until ``ask_drain``; then settle, drain and stop. ``False`` when exchanges had to be cut."""
        await self._draining.wait()
        server = self.settings.server
        drain = asyncio.create_task(
            self._data.drain(
                settle_s=server.settle_s, timeout_s=server.drain_timeout_s, inflight=lambda: len(self._inflight)
            )
        )
        second = asyncio.create_task(self._asked_again.wait())
        await asyncio.wait((drain, second), return_when=asyncio.FIRST_COMPLETED)
        clean = drain.done() and drain.result()
        for task in (drain, second):
            task.cancel()
        await self.stop()
        return clean

    def ask_drain(self) -> None:
        """First call: leave gently. Second call: leave at once. To be called on the loop."""
        if self._draining.is_set():
            self._asked_again.set()
            return
        self._log.event("info", "draining", inflight=len(self._inflight))
        self._draining.set()

    async def stop(self) -> None:
        """Stop everything now; safe after a failed start."""
        self._draining.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        parts = (self._upstream, self._media, self._shared_cache, self._shared, self._fetcher, self._tokens)
        for part in (getattr(self, "_data", None), self._hints, *parts):
            if part is not None:
                await part.stop()
        if (admin := getattr(self, "_admin", None)) is not None:
            await asyncio.to_thread(admin.stop)
        self._cutter.shutdown(wait=False, cancel_futures=True)
        self._recorder.flush()
        if self._spans is not None:
            await self._spans.stop()
        self._log.event("info", "stopped")
        self._log.close()

    async def reload(self) -> list[str]:
        """Swap in a complete new world, or change nothing and say why. Returns the problems."""
        return await self._reloader.reload()

    def _watched(self) -> list[Path]:
        return watched_files(self.settings, self._config_file)

    def _on_issuer_failure(self, reason: str) -> None:
        self._log.limited("warning", "token_issuer_unreachable", reason=reason)

    async def look_at_backends(self) -> tuple[Sequence[BackendView], FleetFacts]:
        """Discover the backends once, serving nothing."""
        await self._upstream.start()
        try:
            return self._upstream.everybody(), self._upstream.fleet()
        finally:
            await self._upstream.stop()
            self._log.close()

    async def explain_offline(self, body: bytes, headers: dict[str, str]) -> dict[str, object]:
        """Explain one request with workers and discovery, but without serving."""
        await self._fetcher.start()
        try:
            await self._media.start()
            await self._upstream.start()
            return await self._explain(body, headers)
        finally:
            await self._upstream.stop()
            await self._media.stop()
            await self._fetcher.stop()
            self._log.close()

    async def _explain(self, body: bytes, headers: dict[str, str]) -> dict[str, object]:
        return await explained(body, headers, self._ports, self.world)

    def _render_metrics(self, accept: str) -> tuple[bytes, str]:
        """Called in the admin thread."""
        self._recorder.flush()
        return self._metrics.exposition(accept)

    def _moment(self) -> Moment:
        """Called in the admin thread: reads only what is swapped whole or is a plain number."""
        return Moment(
            now_s=self._clock.now_s(),
            inflight=list(self._inflight.values()),
            media=self._media.facts(),
            fetched=self._fetcher.facts(),
            views=self._upstream.everybody(),
            fleet=self._upstream.fleet(),
            tenants=self.world.policies.tenants,
            reserved_kv_tokens=self._budgets.inflight_kv_tokens,
            waiting_requests=self._budgets.waiting_count(),
            shared=None if self._shared is None else self._shared.facts(),
            log_lines_dropped=self._log.dropped,
            reload_ok=self._reloader.ok,
            reloaded_at=self._reloader.changed_at_s,
            reloads=self._reloader.counts,
            draining=self._draining.is_set(),
            codec_backend=self._codec_backend,
            kv_events=self._upstream.kv_events,
            spans=tally_of(self._spans),
        )

    def _is_ready(self) -> bool:
        return not self._draining.is_set() and self._media.alive

    def _readiness(self) -> dict[str, bool]:
        return {
            "not_draining": not self._draining.is_set(),
            "configuration_loaded": True,
            "image_worker_alive": self._media.alive,
        }
