"""From the settings of sources to the sources themselves: the part of wiring that knows where backends come from.

Decided here: what an address like ``dns://vllm:8000`` means, what Kubernetes settings default to inside a cluster. Not
decided here: how a source is asked (``upstream.sources``), what a backend's settings mean (``wiring``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from gateway.config.backend_list import read_backends, with_options
from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.documents import SettingsProblems
from gateway.config.fleet_problems import DNS, FILE, KUBERNETES
from gateway.upstream.settings import BackendSettings, Found, NamedSource, Source
from gateway.upstream.sources.file import FileSource
from gateway.upstream.sources.kubernetes import SERVICE_ACCOUNT, Cluster, KubernetesSource, Selection
from gateway.upstream.sources.template import Template

_SERVICE_LABEL = "kubernetes.io/service-name"
Make = Callable[[BackendConfig], BackendSettings]


def named_sources(sources: Sequence[SourceConfig], make: Make) -> tuple[NamedSource, ...]:
    """All of them; nothing is asked yet. Raises ValueError for a cluster that is not there, by the source's name."""
    return tuple(NamedSource(each.name or each.url, _source(each, make), each.hold_s) for each in sources)


def _source(config: SourceConfig, make: Make) -> Source:
    parts = urlsplit(config.url)
    template = _template(config, make)
    if parts.scheme == FILE:
        path = Path(config.url.partition(":")[2])
        return FileSource(
            path, config.refresh_s, lambda content: file_backends(content, str(path), config.backend, make)
        )
    if parts.scheme == KUBERNETES:
        return _kubernetes(config, template)
    # dnspython is 60 ms of start that those who ask no DNS need not wait for
    from gateway.upstream.sources.dns import DnsSource, Resolver  # noqa: PLC0415

    port = parts.port if parts.scheme == DNS else None
    return DnsSource(parts.hostname or "", port, template, config.refresh_s, Resolver(config.nameservers))


def file_backends(content: bytes, origin: str, base: BackendConfig, make: Make) -> Found:
    """The backends of a file's content. Raises ValueError with every problem in one line."""
    try:
        listed = read_backends(content, origin, base)
    except SettingsProblems as error:
        raise ValueError("; ".join(error.problems)) from None
    found: list[BackendSettings] = []
    problems: list[str] = []
    for index, each in enumerate(listed):
        try:
            found.append(make(each))
        except ValueError as error:
            problems.append(f"{origin}: backends.{index}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return found


def read_source_files(sources: Sequence[SourceConfig]) -> None:
    """Whether the files among them can be used now. Raises ValueError with the problems of the first that cannot."""
    for index, config in enumerate(sources):
        scheme, _, name = config.url.partition(":")
        if scheme == FILE:
            try:
                content = Path(name).read_bytes()
            except OSError as error:
                raise ValueError(f"sources.{index}.url: {name}: {error.strerror or error}") from None
            file_backends(content, name, config.backend, lambda backend: BackendSettings(backend.url))


def _template(config: SourceConfig, make: Make) -> Template:
    scheme = "https" if config.tls else "http"

    def base(options: Mapping[str, str], where: str) -> BackendSettings:
        try:
            common = with_options(config.backend, options, where)
        except SettingsProblems as error:
            raise ValueError("; ".join(error.problems)) from None
        return make(replace(common, url=f"{scheme}://found"))

    base({}, config.url)  # what cannot hold for any backend is said at the start
    return Template(base, config.tls)


def _kubernetes(config: SourceConfig, template: Template) -> KubernetesSource:
    """Raises ValueError when no API server is given and we run in no cluster."""
    parts = urlsplit(config.url)
    service, _, port = parts.path.strip("/").partition(":")
    around = Cluster.around()
    if config.api_server is None and around is None:
        raise ValueError(f"source {config.name or config.url}: name api_server, this is no pod of a cluster")
    # The service account's token is for its own cluster and is not shown to any other server by itself.
    files = around if around is not None and config.api_server is None else Cluster("", None, None)
    cluster = Cluster(
        config.api_server or files.api_server,
        files.token_file if config.token_file is None else Path(config.token_file),
        files.ca_file if config.ca_file is None else Path(config.ca_file),
    )
    selector = config.selector or f"{_SERVICE_LABEL}={service}"
    return KubernetesSource(
        cluster, Selection(parts.netloc or _own_namespace(), selector, port), template, config.refresh_s
    )


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"
