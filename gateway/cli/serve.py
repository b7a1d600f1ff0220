"""``vlm-gateway serve``: run the gateway until it is told to leave.

Decided here: flags, signals (SIGTERM and SIGINT drain, a second one leaves at once, SIGHUP reloads) and the exit code.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gateway.app import Gateway
from gateway.cli.output import fail, say
from gateway.config.policies import PolicyProblems
from gateway.config.settings import Settings
from gateway.config.sources import SettingsProblems, load_settings
from gateway.media.codecs import CodecBackendMissing
from gateway.media.crew import PoolCannotStart


def settings_from(
    config: Path | None,
    backend: list[str] | None,
    flags: dict[str, object],
    max_pixels: str | None = None,
) -> Settings:
    """Settings from file, environment and the flags that were given; exits with every problem when there are any."""
    try:
        return load_settings(config, flags=_given(backend, flags, max_pixels))
    except SettingsProblems as error:
        raise fail("The settings cannot be used:", error.problems, code=2) from None


def _given(backend: list[str] | None, flags: dict[str, object], max_pixels: str | None) -> dict[str, object]:
    given = {path: value for path, value in flags.items() if value is not None}
    if backend:
        given["backends"] = [{"url": url, "max_pixels": max_pixels} for url in backend]
    elif max_pixels is not None:
        raise fail("--max-pixels belongs to --backend; in gateway.yaml it is a setting of each backend.", code=2)
    return given


def serve(  # noqa: PLR0913, PLR0917  # one parameter per flag
    backend: Annotated[
        list[str] | None, typer.Option(help="URL of an engine; repeat for more. Everything else is discovered.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)] = None,
    host: Annotated[str | None, typer.Option(help="Address of the data port.")] = None,
    port: Annotated[int | None, typer.Option(help="Data port; 0 takes a free one.")] = None,
    admin_host: Annotated[str | None, typer.Option(help="Address of the admin port.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Admin port; 0 takes a free one.")] = None,
    pool: Annotated[int | None, typer.Option(help="Image worker processes.")] = None,
    policies: Annotated[
        Path | None, typer.Option(help="Directory of policy files.", exists=True, file_okay=False)
    ] = None,
    max_pixels: Annotated[
        str | None, typer.Option(help="The pixel cap the engines were started with (1310720 or 1280x32x32).")
    ] = None,
) -> None:
    """Serve: a reverse proxy for chat APIs in front of the given engines."""
    flags: dict[str, object] = {
        "server.host": host,
        "server.port": port,
        "server.admin_host": admin_host,
        "server.admin_port": admin_port,
        "media.workers": pool,
        "policies": None if policies is None else str(policies),
    }
    settings = settings_from(config, backend, flags, max_pixels)
    if not settings.backends and not settings.sources:
        raise fail("No backend: name one with --backend URL or in gateway.yaml, or a source of backends.", code=2)
    given = _given(backend, flags, max_pixels)
    raise typer.Exit(run(settings, lambda: load_settings(config, flags=given), config))


def run(settings: Settings, reread: Callable[[], Settings] | None = None, config: Path | None = None) -> int:
    """Run one gateway in this process; returns the exit code. ``reread`` and ``config`` are for reloads."""
    try:
        return asyncio.run(_run(settings, reread, config))
    except PolicyProblems as error:
        raise fail("The policies cannot be used:", [str(problem) for problem in error.problems], code=2) from None
    except (CodecBackendMissing, PoolCannotStart, ValueError) as error:
        raise fail(str(error), code=2) from None
    except OSError as error:
        hint = " (--port and --admin-port choose others)" if error.errno == errno.EADDRINUSE else ""
        raise fail(f"Cannot listen: {error.strerror or error}{hint}", code=1) from None


def _raise_file_limit() -> None:
    """As many connections as the system grants: the soft limit is 1,024 in most places, for programs that select()."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(settings: Settings, reread: Callable[[], Settings] | None, config: Path | None) -> int:
    _raise_file_limit()
    gateway = Gateway(settings, reread=reread, config_file=config)
    reloads: set[asyncio.Task[list[str]]] = set()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, gateway.ask_drain)

    def reload() -> None:
        task = loop.create_task(gateway.reload())
        reloads.add(task)  # the loop itself holds its tasks only weakly
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        listening = await gateway.start()
    except BaseException:
        await gateway.stop()
        raise
    data = f"http://{settings.server.host}:{listening.data}"
    fleet = f"{len(settings.backends)} backend(s)" + f", {len(settings.sources)} source(s)" * bool(settings.sources)
    say(f"Serving {fleet} on {data}, admin on port {listening.admin}.")
    return 0 if await gateway.run_until_drained() else 1
