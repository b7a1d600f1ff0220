"""``vlm-gateway process``: the image pipeline offline, file in, file out, with the code that serves.

Decided here: where results are written and what the table shows. Not decided here: what is done to an image.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pybase64
import typer
from rich.console import Console
from rich.progress import Progress

from gateway.assembly.wiring import deployment_key, fetch_settings, load_world, media_settings
from gateway.cli.adaptive import PICTURE_SUFFIXES
from gateway.cli.clips import is_video, process_clip
from gateway.cli.estimate import load_policy_set, read_pixels, resolve_for
from gateway.cli.output import fail, say, show_json, show_table
from gateway.cli.serve import settings_from
from gateway.config.settings import ModelConfig
from gateway.errors import GatewayError
from gateway.media.codecs import CodecBackendMissing
from gateway.media.crew import PoolCannotStart
from gateway.media.fetch import Fetcher
from gateway.media.service import MediaService
from gateway.media.shm import HeapBody
from gateway.policy.check import check_measured
from gateway.policy.effective import EffectivePolicy
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.policy.rule import MeasuredImage
from gateway.ports import PrepareJob, SourceRef
from gateway.stages.exchange import World
from gateway.stages.frames import spread
from gateway.stages.planning import cap_of, estimate_request, media_scope, plan_images
from gateway.stages.serving import served_model
from gateway.types import Call, ImagePart, ImagePlan, LongString, Prepared, Span

# What is taken of a folder. A file that is named itself is tried whatever its name.
_SUFFIXES = PICTURE_SUFFIXES | {".pdf", ".mp4", ".m4v", ".mov", ".webm", ".mkv", ".avi"}


@dataclass(frozen=True, slots=True)
class _Done:
    stem: str
    row: dict[str, object]
    file: bytes | None
    suffix: str


def process(  # noqa: PLR0913, PLR0917  # one parameter per flag
    images: Annotated[list[Path], typer.Argument(help="Image or video files, or folders of them.", exists=True)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the results.", file_okay=False)],
    model: Annotated[str, typer.Option(help="Served model.")] = "Qwen/Qwen3-VL-8B-Instruct",
    task: Annotated[str | None, typer.Option(help="Task of the policy.")] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the policy.")] = DEFAULT_TENANT,
    policies: Annotated[Path | None, typer.Option(help="Directory of policy files.", file_okay=False)] = None,
    max_pixels: Annotated[
        int | None,
        typer.Option(help="Pixel cap the engine was started with (1310720 or 1280x32x32).", parser=read_pixels),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the pipeline over files and write what an engine would get."""
    images = _files(images)
    load_policy_set(policies)  # says every problem before a worker starts
    flags: dict[str, object] = {"policies": None if policies is None else str(policies)}
    settings = settings_from(config, None, flags)
    if max_pixels is not None:
        override = replace(settings.models.get(model, ModelConfig()), max_pixels=max_pixels)
        settings = replace(settings, models={**settings.models, model: override})
    key = deployment_key(settings)
    world = load_world(settings, key)
    policy = resolve_for(world.policies, tenant, task, model)
    try:
        media = MediaService(media_settings(settings, key), Fetcher(fetch_settings(settings)))
        done = asyncio.run(_all(images, media, world, policy))
    except GatewayError as error:
        raise fail(error.message, code=2) from None
    except (CodecBackendMissing, PoolCannotStart) as error:
        raise fail(str(error), code=2) from None
    try:
        _write(images, done, output)
    except OSError as error:
        raise fail(f"Cannot write {error.filename}: {error.strerror}.", code=1) from None
    rows = [result.row for result in done]
    if json:
        show_json(rows)
    else:
        columns = ("image", "original", "delivered", "bytes", "now", "tokens", "was", "as", "why")
        keys = ("image", "original", "delivered", "bytes", "bytes_delivered", "tokens", "tokens_original", "as", "why")
        named = [row | {"as": Path(str(row.get("file", ""))).name} for row in rows]
        show_table(f"{model}, task {policy.task}", columns, [[str(row.get(key, "")) for key in keys] for row in named])
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _files(given: list[Path]) -> list[Path]:
    """What was given, and for a folder the pictures and videos in it, by name; not those below, nor hidden ones."""
    found: list[Path] = []
    others: list[str] = []
    for path in given:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        taken = [each for each in inside if each.suffix.lower() in _SUFFIXES]
        if not taken:
            raise fail(f"There is no image or video in {path}.", code=2)
        found += taken
        others += [each.name for each in inside if each not in taken]
    if others:
        say(f"Left out, since their names are no image's or video's: {', '.join(others)}")
    return found


def _write(images: list[Path], done: list[_Done], output: Path) -> None:
    """Write each result under its image's name; a name that is taken, by an original above all, gets a number."""
    output.mkdir(parents=True, exist_ok=True)
    taken = {path.resolve() for path in images}
    for result in done:
        if result.file is None:
            continue
        stem = result.stem
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
        targets = (output / f"{name}.{result.suffix}" for name in names)
        target = next(target for target in targets if target.resolve() not in taken)
        taken.add(target.resolve())
        target.write_bytes(result.file)
        result.row["file"] = str(target)


async def _all(images: list[Path], media: MediaService, world: World, policy: EffectivePolicy) -> list[_Done]:
    await media.start()
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=len(images) < 2) as progress:
            bar = progress.add_task("images", total=len(images))
            done: list[_Done] = []
            for path in images:
                done += await _one(path, await asyncio.to_thread(path.read_bytes), media, world, policy)
                progress.advance(bar)
            return done
    finally:
        await media.stop()


async def _video(path: Path, data: bytes, media: MediaService, world: World, policy: EffectivePolicy) -> _Done:
    try:
        done = await process_clip(path.name, data, media.clips, world, policy)
    except GatewayError as error:
        say(f"{path.name}: {error.message}")
        row = {"image": path.name, "bytes": len(data), "error": error.code, "why": error.code, "message": error.message}
        return _Done(path.stem, row, None, "")
    return _Done(path.stem, done.row, done.file, done.suffix)


async def _one(path: Path, data: bytes, media: MediaService, world: World, policy: EffectivePolicy) -> list[_Done]:
    """What becomes of one file, as a request of its own: of an animation as many images as the policy takes."""
    if is_video(data[:64]):
        return [await _video(path, data, media, world, policy)]
    url = b"data:application/octet-stream;base64," + pybase64.b64encode(data)
    body = HeapBody(url)
    source = LongString(Span(0, len(url)), has_escapes=False)
    ref = SourceRef(path.name, source)
    part = ImagePart(("images", 0), ("images", 0), source)
    call = Call(policy.model, False, False, None, (part,), 0, 1)
    row: dict[str, object] = {"image": path.name, "bytes": len(data)}
    try:
        scope = media_scope(policy, world)
        looked = await media.look(body, (ref,), scope)
        served = served_model(world.book, policy, ())
        call, facts = spread(policy, call, looked.facts)
        plans = plan_images(policy, served, call, facts, media.plan_version)
        measured = [
            MeasuredImage.of(part, fact, cap_of(policy, served), plan)
            for part, fact, plan in zip(call.images, facts, plans, strict=True)
        ]
        check_measured(policy, measured, estimate_request(world.book, served, policy, call, plans), None)
        jobs = [PrepareJob(ref, fact, plan) for fact, plan in zip(facts, plans, strict=True)]
        results = await media.prepare(body, looked, jobs, scope)
    except GatewayError as error:
        say(f"{path.name}: {error.message}")
        return [_Done(path.stem, row | {"error": error.code, "why": error.code, "message": error.message}, None, "")]
    return [_made(path.stem, row, plan, result.prepared) for plan, result in zip(plans, results, strict=True)]


def _made(stem: str, row: dict[str, object], plan: ImagePlan, result: Prepared) -> _Done:
    row = row | {
        "original": str(plan.original),
        "delivered": str(result.size),
        "bytes_delivered": result.file_byte_count,
        "tokens": plan.after.tokens,
        "tokens_original": plan.before.tokens,
        "format": result.format.value,
        "changes": [change.value for change in plan.changes],
        "why": ", ".join(change.value for change in plan.changes if change.value != "data_url") or "passed untouched",
    }
    file = pybase64.b64decode(result.data_url.partition(b",")[2])
    return _Done(stem, row, file, {"jpeg": "jpg"}.get(result.format.value, result.format.value))
