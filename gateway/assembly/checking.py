"""What only a look at this machine's files can find wrong with settings, before anything starts.

Decided here: which files are tried, and that all problems are told. Not decided here: how files are used (``api.tls``,
``upstream.tls``, ``assembly.finding``), what single settings may be (``config``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gateway.assembly.finding import read_source_files
from gateway.assembly.listening import tls_of
from gateway.assembly.wiring import backend_settings, tokens_of
from gateway.config.backends import BackendConfig
from gateway.config.settings import ServerSettings, Settings
from gateway.upstream.tls import context_of


def file_problems(settings: Settings) -> list[str]:
    """One line for each, naming the setting and the file."""
    tries: list[Callable[[], object]] = [
        lambda: read_source_files(settings.sources),
        lambda: tls_of(settings.server),
        lambda: _socket_folder(settings.server),
        lambda: tokens_of(settings, lambda _: None),
        *(partial(_try_backend, each) for each in settings.backends),
    ]
    problems = []
    for attempt in tries:
        try:
            attempt()
        except ValueError as error:
            problems.append(str(error))
    return problems


def _socket_folder(server: ServerSettings) -> None:
    if server.unix_socket is not None and not Path(server.unix_socket).absolute().parent.is_dir():
        raise ValueError(f"server.unix_socket: {server.unix_socket} cannot be made: its folder is not there")


def _try_backend(config: BackendConfig) -> None:
    backend = backend_settings(config)
    if backend.is_https:
        context_of(backend)
