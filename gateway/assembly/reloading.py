"""Reloads: a complete new snapshot, or nothing changes and everybody hears why.

Decided here: that reading happens in a thread (a thousand policies take a second, in which requests go on), one reload
at a time, what may change while the process runs, and that no reload opens a gateway that asked for keys. Not decided
here: what is read (``wiring``), when (a signal, the admin port, a changed file).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from gateway.config.documents import SettingsProblems
from gateway.config.policies import PolicyProblems
from gateway.config.reloaded import reloaded, waiting
from gateway.config.settings import Settings
from gateway.stages.exchange import World
from gateway.telemetry.log import JsonLog


class Reloader:
    """The snapshot in force, its settings, and the way to the next one."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[Settings, World | None], World],
        log: JsonLog,
        reread: Callable[[], Settings] | None = None,
        renew: Callable[[], None] | None = None,
    ) -> None:
        """Raises what ``load`` raises. ``reread`` reads the settings anew; without it they stay and files are read.

        ``renew`` takes up, on the loop, what is not in the snapshot. It may raise ValueError: a file can change again.
        """
        self.settings = settings
        self._load = load
        self._log = log
        self._reread = reread
        self._renew = renew
        self._next: asyncio.Task[list[str]] | None = None
        self._one_at_a_time = asyncio.Lock()
        self.world = load(settings, None)
        self.ok = True
        self.changed_at_s = time.time()
        self.counts = {"ok": 0, "failed": 0}

    async def reload(self) -> list[str]:
        """Take the next snapshot into force. Returns the problems; with any of them nothing has changed.

        Who asks while one is under way shares the next with all who do: a thousand hangups are two reloads.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._reload())
        return await asyncio.shield(self._next)

    async def _reload(self) -> list[str]:
        async with self._one_at_a_time:
            self._next = None  # what changes from here on may be read too late
            problems: list[str] = []
            try:
                settings, world, waits = await asyncio.to_thread(self._read)
                if self._renew is not None:
                    self._renew()
            except (SettingsProblems, PolicyProblems) as error:
                problems = [str(problem) for problem in error.problems]
            except ValueError as error:
                problems = [str(error)]
            except Exception as error:  # noqa: BLE001 - whatever files hold, who watches them goes on, and says so
                problems = [f"could not be read: {type(error).__name__}: {error}"]
            else:
                self.settings, self.world = settings, world
                self._log.configure(settings.log.level, access=settings.log.access)
                self.changed_at_s = time.time()
                if waits:
                    self._log.event("warning", "restart_needed", settings=waits)
            self.ok = not problems
            self.counts["ok" if self.ok else "failed"] += 1
            self._log.event("info" if self.ok else "error", "reload", ok=self.ok, problems=problems)
            return problems

    def _read(self) -> tuple[Settings, World, list[str]]:
        """In a thread: only what may change takes effect, the rest is as it was at the start and is named.

        A file that is empty for a moment must not lift all limits or let everybody in, so neither is taken over.
        """
        fresh = self.settings if self._reread is None else self._reread()
        if self.settings.policies is not None and fresh.policies is None:
            raise ValueError("policies: no folder is named any more; to serve without policies, restart")
        settings = reloaded(self.settings, fresh)
        world = self._load(settings, self.world)
        if self.world.has_tenants and not world.has_tenants:
            raise ValueError("keys: no policy file has one any more; to let everybody in, restart")
        return settings, world, waiting(self.settings, fresh)
