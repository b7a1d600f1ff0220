"""Commands that look and tell: ``doctor``, ``explain``.

Decided here: what is looked at and how it is shown. Nothing here changes anything; an engine gets probes, and from
``doctor`` a handful of generated pictures (``trial``).
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gateway import __version__
from gateway.app import Gateway
from gateway.assembly.beside import neighbours
from gateway.cli.live import look
from gateway.cli.output import fail, say, show_json, show_table
from gateway.cli.serve import settings_from
from gateway.cli.trial import trial_rows
from gateway.config.policies import PolicyProblems
from gateway.config.settings import Settings
from gateway.errors import GatewayError
from gateway.explain import PATH_HEADER
from gateway.media.codecs import CodecBackendMissing, describe
from gateway.media.confine import UnknownUser, probe
from gateway.media.settings import cgroup_cpus
from gateway.models.book import ModelBook
from gateway.types import BackendView
from gateway.upstream.membership import FleetFacts, SourceState

ConfigOption = Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def doctor(
    backend: Annotated[list[str] | None, typer.Option(help="URL of an engine to look at; repeat for more.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    live: Annotated[bool, typer.Option("--live", help="Ask only whether the gateway here is alive.")] = False,
    admin: Annotated[str | None, typer.Option(help="With --live: the admin port's address.")] = None,
) -> None:
    """Look at codecs, limits and backends, and say what would keep the gateway from working well."""
    if live:
        raise typer.Exit(look(admin, config, os.environ))
    settings = settings_from(config, backend, {})
    problems: list[str] = []
    try:
        codecs = describe()
    except CodecBackendMissing as error:
        codecs = {"available": [], "default": None}
        problems.append(str(error))
    wanted = settings.media.codec_backend
    if wanted not in ("auto", *[str(name) for name in _names(codecs.get("available"))]):
        problems.append(f"media.codec_backend is {wanted}, which is not available here: start-up would refuse")
    limits = _limits(problems)
    sandbox, beside = _sandbox(settings, problems), _beside(settings, problems)
    views: Sequence[BackendView] = ()
    trials: list[dict[str, object]] = []
    sources: list[dict[str, object]] = []
    if settings.backends or settings.sources:
        try:
            gateway = Gateway(_quiet(settings))
            views, fleet = asyncio.run(gateway.look_at_backends())
        except (PolicyProblems, ValueError) as error:
            raise fail(str(error), code=2) from None
        problems += [f"backend {view.name} does not answer at {view.url}" for view in views if not view.healthy]
        sources = [_source_row(state) for state in fleet.sources]
        problems += [
            f"source {state.name}: {state.problem or 'no answer yet'}" for state in fleet.sources if not state.ok
        ]
        keys = _keys(settings, fleet)
        trials = [row for view in views if view.healthy for row in _trials(keys, gateway.world.book, view)]
        problems += [problem for row in trials if (problem := _trial_problem(row)) is not None]
    rows = [_backend_row(view) for view in views]
    if json:
        show_json({
            "version": __version__, "codecs": codecs, "limits": limits, "sandbox": sandbox, "sources": sources,
            "backends": rows, "image_tokens": trials, "beside": beside, "problems": problems,
        })  # fmt: skip
    else:
        show_table("Codecs", ("what", "value"), _codec_rows(codecs))
        show_table("Limits", ("what", "value"), [(key, _told(value)) for key, value in limits.items()])
        show_table("Walls around image workers", ("wall", "what it does"), list(sandbox.items()))
        _show_beside(beside)
        if sources:
            show_table("Sources of backends", tuple(sources[0]), [[_told(v) for v in row.values()] for row in sources])
        if rows:
            show_table("Backends", tuple(rows[0]), [[_told(value) for value in row.values()] for row in rows])
        if trials:
            columns = ("backend", "model", "size", "predicted", "actual", "agrees", "error")
            show_table("Image tokens", columns, [[str(row.get(key, "")) for key in columns] for row in trials])
        for problem in problems:
            say(f"problem: {problem}")
    if problems:
        raise typer.Exit(1)


def _beside(settings: Settings, problems: list[str]) -> dict[str, str]:
    """How each store and the collector answered, by setting."""
    found = asyncio.run(neighbours(settings))
    problems += [f"{each.setting}: {each.problem}" for each in found if each.problem]
    return {each.setting: each.problem or "ok" for each in found}


def _show_beside(beside: dict[str, str]) -> None:
    if beside:
        show_table("Beside the gateway", ("setting", "outcome"), list(beside.items()))


def _quiet(settings: Settings) -> Settings:
    """Standard output is the command's own: what goes wrong with a source is told among the problems."""
    return replace(settings, log=replace(settings.log, level="error"))


def _keys(settings: Settings, fleet: FleetFacts) -> dict[str, str | None]:
    """Each backend's key, by its address where it is configured, by its name where a source found it."""
    keys = {backend.url.rstrip("/"): backend.api_key for backend in settings.backends}
    for source, state in zip(settings.sources, fleet.sources, strict=True):
        keys |= dict.fromkeys(state.backends, source.backend.api_key)
    return keys


def _source_row(state: SourceState) -> dict[str, object]:
    return {"name": state.name, "ok": state.ok, "backends": list(state.backends), "problem": state.problem or ""}


def _trials(keys: dict[str, str | None], book: ModelBook, view: BackendView) -> list[dict[str, object]]:
    """What an engine counts for generated pictures; nothing for one that takes none, or serves nothing by name."""
    served = book.serve(view.models[0], (view,)) if view.models else None
    if served is None or not served.serves_images:
        return []
    return trial_rows(view, served, keys.get(view.name) or keys.get(view.url))


def _trial_problem(row: dict[str, object]) -> str | None:
    place = f"backend {row['backend']}, model {row['model']}, image {row['size']}"
    if "error" in row:
        return f"{place}: {row['error']}"
    if row["agrees"]:
        return None
    return (
        f"{place}: {row['predicted']} tokens predicted, {row['actual']} counted by the engine; "
        "name its checkpoint (models) or tell the cap it was started with (backends.max_pixels)"
    )


def _codec_rows(codecs: dict[str, object]) -> list[tuple[str, str]]:
    """One row for every fact; those that are told by backend get a row for each, since they are long."""
    rows: list[tuple[str, str]] = []
    for key, value in codecs.items():
        entries = value.items() if isinstance(value, dict) else ()
        rows += [(f"{key}: {name}", _told(entry)) for name, entry in entries] or [(key, _told(value))]
    return rows


def _told(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {entry}" for key, entry in value.items())
    if isinstance(value, list):
        return ", ".join(str(entry) for entry in value)
    return "unknown" if value is None else str(value)


def _names(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _limits(problems: list[str]) -> dict[str, object]:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < 4096:  # a client and a backend connection per exchange, 2,000 at once
        problems.append(f"only {files} files may be open; raise the limit (ulimit -n) to 4096 or more")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpus": cgroup_cpus(),
        "memory_bytes": pages,
        "open_files": files,
        "disk_free_bytes": shutil.disk_usage("/").free,
    }


def _sandbox(settings: Settings, problems: list[str]) -> dict[str, str]:
    """Which walls a worker would have here, by layer."""
    media = settings.media
    try:
        report = probe(media.sandbox_user)
    except UnknownUser as error:
        problems.append(str(error))
        return {}
    if media.sandbox == "require" and report.missing:
        problems.append(f"media.sandbox is require, but {', '.join(report.missing)} is missing: start-up would refuse")
    return report.lines() if media.sandbox != "off" else {}


def _backend_row(view: BackendView) -> dict[str, object]:
    return {
        "name": view.name,
        "engine": view.engine.value,
        "version": view.engine_version,
        "models": ", ".join(view.models),
        "context_tokens": view.context_tokens,
        "kv_tokens": view.kv_capacity_tokens,
        "max_pixels": view.max_pixels,
        "max_images": view.max_images,
        "prefill_chunk_tokens": view.prefill_chunk_tokens,
        "api_servers": view.api_servers,
        "healthy": view.healthy,
    }


def explain(  # noqa: PLR0917  # one parameter per flag
    request: Annotated[Path, typer.Argument(help="A request body.", exists=True, dir_okay=False)],
    backend: Annotated[list[str] | None, typer.Option(help="URL of an engine; repeat for more.")] = None,
    config: ConfigOption = None,
    policies: Annotated[Path | None, typer.Option(help="Directory of policy files.", file_okay=False)] = None,
    task: Annotated[str | None, typer.Option(help="The task, as if sent in the header x-vlmgw-task.")] = None,
    key: Annotated[str | None, typer.Option(help="API key of the tenant.", envvar="VLMGW_KEY")] = None,
    max_pixels: Annotated[str | None, typer.Option(help="The pixel cap the engines were started with.")] = None,
    path: Annotated[str | None, typer.Option(help="Path whose body it is (/v1/messages); else chat's.")] = None,
) -> None:
    """Tell what would be done with a request and why; nothing is sent."""
    flags: dict[str, object] = {"policies": None if policies is None else str(policies)}
    settings = settings_from(config, backend, flags, max_pixels)
    headers = {"content-type": "application/json"}
    if task is not None:
        headers["x-vlmgw-task"] = task
    if path is not None:
        headers[PATH_HEADER] = path
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    try:
        gateway = Gateway(_quiet(settings))
        told = asyncio.run(gateway.explain_offline(request.read_bytes(), headers))
    except PolicyProblems as error:
        raise fail("The policies cannot be used:", [str(problem) for problem in error.problems], code=2) from None
    except (GatewayError, ValueError) as error:
        raise fail(str(error), code=2) from None
    show_json(told)
    if "refused" in told:
        raise typer.Exit(1)
