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
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gateway.app import Gateway, Listening
from gateway.cli.output import fail, say
from gateway.config.documents import SettingsProblems
from gateway.config.policies import PolicyProblems
from gateway.config.settings import ServerSettings, Settings
from gateway.config.sources import load_settings
from gateway.media.codecs import CodecBackendMissing
from gateway.media.crew import PoolCannotStart


def settings_from(
    config: Path | None,
    backend: list[str] | None,
    flags: dict[str, object],
    max_pixels: str | None = None,
) -> Settings:
    """Settings from file, environment and the flags that were given; exits with every problem when there are any."""
    return settings_given(config, _given(backend, flags, max_pixels))


def settings_given(config: Path | None, given: dict[str, object]) -> Settings:
    """The same, of flags by their dotted paths."""
    try:
        return load_settings(config, flags=given)
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
    processes: Annotated[
        int | None, typer.Option(help="Gateway processes that share the data port; process i has admin port + i.")
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
        "server.processes": processes,
        "media.workers": pool,
        "policies": None if policies is None else str(policies),
    }
    settings = settings_from(config, backend, flags, max_pixels)
    if not settings.backends and not settings.sources:
        raise fail("No backend: name one with --backend URL or in gateway.yaml, or a source of backends.", code=2)
    given = _given(backend, flags, max_pixels)
    if settings.server.processes > 1:
        # its HTTP client and its subprocesses are nothing that one process needs
        from gateway.cli.several import run_several  # noqa: PLC0415

        raise typer.Exit(run_several(settings, given, config))
    raise typer.Exit(run(settings, lambda: load_settings(config, flags=given), config))


def run(
    settings: Settings,
    reread: Callable[[], Settings] | None = None,
    config: Path | None = None,
    *,
    key: bytes | None = None,
    started: Callable[[Listening], None] | None = None,
) -> int:
    """Run one gateway in this process; returns the exit code. ``reread`` and ``config`` are for reloads.

    ``key`` is the deployment's; ``started`` hears of the ports, by default people do.
    """
    try:
        return asyncio.run(_run(settings, reread, config, key, started or partial(tell, settings)))
    except PolicyProblems as error:
        raise fail("The policies cannot be used:", [str(problem) for problem in error.problems], code=2) from None
    except (CodecBackendMissing, PoolCannotStart, ValueError) as error:
        raise fail(str(error), code=2) from None
    except OSError as error:
        raise cannot_listen(error) from None


def cannot_listen(error: OSError) -> typer.Exit:
    """Say why, and what would help."""
    hint = " (--port and --admin-port choose others)" if error.errno == errno.EADDRINUSE else ""
    return fail(f"Cannot listen: {error.strerror or error}{hint}", code=1)


def tell(settings: Settings, listening: Listening) -> None:
    """Where requests are served."""
    data = " and ".join(_places(settings.server, listening.data))
    fleet = f"{len(settings.backends)} backend(s)" + f", {len(settings.sources)} source(s)" * bool(settings.sources)
    say(f"Serving {fleet} on {data}, admin on port {listening.admin}.")


def _places(server: ServerSettings, port: int) -> list[str]:
    scheme = "http" if server.tls_cert_file is None else "https"
    host = f"[{server.host}]" if ":" in server.host and not server.host.startswith("[") else server.host
    found = [f"{scheme}://{host}:{port}"] if server.tcp else []
    return found if server.unix_socket is None else [*found, f"Unix socket {server.unix_socket}"]


def _raise_file_limit() -> None:
    """As many connections as the system grants: the soft limit is 1,024 in most places, for programs that select()."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(
    settings: Settings,
    reread: Callable[[], Settings] | None,
    config: Path | None,
    key: bytes | None,
    started: Callable[[Listening], None],
) -> int:
    _raise_file_limit()
    gateway = Gateway(settings, reread=reread, config_file=config, key=key)
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
    started(listening)
    return 0 if await gateway.run_until_drained() else 1
