"""``serve`` as several processes: the supervisor, its admin port and its signals, from start to exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from gateway.api.admin import AdminServer
from gateway.app import Listening
from gateway.assembly.advising import warn
from gateway.cli.serve import cannot_listen, tell
from gateway.cli.supervision import Supervision
from gateway.cli.supervisor import FailedAtStart, Supervisor
from gateway.config.policies import PolicyProblems, load_policies
from gateway.config.settings import Settings
from gateway.policy.policyset import PolicySet, builtin_policies
from gateway.telemetry.log import JsonLog


def run_several(settings: Settings, flags: dict[str, object], config: Path | None) -> int:
    """Run ``server.processes`` gateways behind one data port; returns the exit code. ``flags`` are for reloads."""
    log = JsonLog(settings.log.level, access=settings.log.access)
    try:
        return asyncio.run(_run(settings, flags, config, log))
    except FailedAtStart as error:
        return max(error.code, 1)  # it has said why, or was ended by a signal
    except OSError as error:
        raise cannot_listen(error) from None
    finally:
        log.close()


async def _run(settings: Settings, flags: dict[str, object], config: Path | None, log: JsonLog) -> int:
    loop = asyncio.get_running_loop()
    supervisor = Supervisor(settings, flags, config, log)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.pass_on, number)
    supervision = Supervision(supervisor, settings)
    server = settings.server
    warn(settings, _policies(settings), os.environ, log, time.time())
    admin = AdminServer(supervision.view(loop), host=server.admin_host, port=server.admin_port)
    admin_port = admin.start()
    try:
        await supervisor.start()
        log.event(
            "info", "processes_started", data_port=supervisor.data_port, admin_port=admin_port,
            admin_ports=[sibling.admin_port for sibling in supervisor.siblings],
            budgets="split" if settings.redis.url is None else "shared",
        )  # fmt: skip
        if settings.redis.url is None:
            log.event(
                "warning", "budgets_split", processes=server.processes,
                reason="without redis.url each process decides by its part of every budget, rate and backend limit",
            )  # fmt: skip
        tell(settings, Listening(supervisor.data_port, admin_port))
        return await supervisor.run()
    finally:
        await asyncio.to_thread(admin.stop)
        supervision.stop()


def _policies(settings: Settings) -> PolicySet | None:
    """For warnings alone: what is wrong with them, the processes say."""
    try:
        return builtin_policies() if settings.policies is None else load_policies(Path(settings.policies))
    except PolicyProblems:
        return None
