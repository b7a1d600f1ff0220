"""``vlm-gateway adaptive``: what the rule `adaptive` would do to a folder of images, before anybody turns it on.

Decided here: what is compared (the policy's plan without the rule and with it) and what the report shows. Not decided
here: the measure, the plan, any number; they are the server's. Images are decoded in workers only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log10
from pathlib import Path
from typing import Annotated

import pybase64
import typer
from rich.console import Console
from rich.progress import Progress

from gateway.assembly.wiring import deployment_key, fetch_settings, load_world, media_settings
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
from gateway.models.detail import TEXT_PERMILLE
from gateway.policy.effective import Adaptive, EffectivePolicy
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.ports import SourceRef
from gateway.stages.exchange import World
from gateway.stages.planning import media_scope, plan_images
from gateway.stages.serving import served_model
from gateway.types import Call, Change, Detail, ImagePart, ImagePlan, LongString, Span

# By its name what lies in a folder is taken for a picture; whatever is named itself is tried.
PICTURE_SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jp2", ".ico")
)
_PEAK = 255 * 255 * 256
_COLUMNS = {
    "image": "image",
    "original": "original",
    "halved_db": "halved dB",
    "text_permille": "text ‰",
    "under_caps": "under caps",
    "adapted": "adapted",
    "tokens_under_caps": "tokens",
    "tokens": "now",
    "psnr_under_caps_db": "dB",
    "psnr_db": "now dB",
    "why": "why",
}
_LEGEND = (
    "halved dB: PSNR that halving its sides leaves a picture, measured at about a million pixels; the higher, the less "
    f"it shows. text ‰: places that look like text; from {TEXT_PERMILLE} on a picture is left alone. tokens, dB: under "
    "the policy's caps; now, now dB: with the rule as well. dB: PSNR against the original's brightness; 99.0: nothing "
    "lost."
)


@dataclass(frozen=True, slots=True)
class _Trial:
    """The pipeline, and the policy without the rule and with it."""

    media: MediaService
    world: World
    without: EffectivePolicy
    adaptive: EffectivePolicy


def adaptive(  # noqa: PLR0913, PLR0917  # one parameter per flag
    images: Annotated[list[Path], typer.Argument(help="Folders of images, or image files.", exists=True)],
    model: Annotated[str, typer.Option(help="Served model.")] = "Qwen/Qwen3-VL-8B-Instruct",
    task: Annotated[str | None, typer.Option(help="Task of the policy.")] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the policy.")] = DEFAULT_TENANT,
    policies: Annotated[Path | None, typer.Option(help="Directory of policy files.", file_okay=False)] = None,
    max_pixels: Annotated[
        int | None,
        typer.Option(help="Pixel cap the engine was started with (1310720 or 1280x32x32).", parser=read_pixels),
    ] = None,
    floor_pixels: Annotated[
        int | None, typer.Option(help="Instead of the policy's (262144 or 512x512).", parser=read_pixels)
    ] = None,
    halving_psnr_db: Annotated[
        int | None, typer.Option(help="Instead of the policy's; lower shrinks more.", min=20, max=60)
    ] = None,
    config: Annotated[Path | None, typer.Option(help="gateway.yaml", exists=True, dir_okay=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what the rule `adaptive` would do to images: sizes, tokens and what is lost, with and without it."""
    files = _files(images)
    if not files:
        raise fail(f"No images are in {', '.join(str(path) for path in images)}.", code=2)
    load_policy_set(policies)  # says every problem before a worker starts
    settings = settings_from(config, None, {"policies": None if policies is None else str(policies)})
    if max_pixels is not None:
        override = replace(settings.models.get(model, ModelConfig()), max_pixels=max_pixels)
        settings = replace(settings, models={**settings.models, model: override})
    key = deployment_key(settings)
    world = load_world(settings, key)
    policy = resolve_for(world.policies, tenant, task, model)
    given = {"floor_pixels": floor_pixels, "halving_psnr_db": halving_psnr_db}
    knobs = replace(
        policy.adaptive or Adaptive(), **{name: value for name, value in given.items() if value is not None}
    )
    try:
        media = MediaService(media_settings(settings, key), Fetcher(fetch_settings(settings)))
        trial = _Trial(media, world, replace(policy, adaptive=None), replace(policy, adaptive=knobs))
        rows = asyncio.run(_all(files, trial))
    except GatewayError as error:
        raise fail(error.message, code=2) from None
    except (CodecBackendMissing, PoolCannotStart) as error:
        raise fail(str(error), code=2) from None
    totals = _totals(rows)
    title = f"{model}, task {policy.task}, floor_pixels {knobs.floor_pixels}, halving_psnr_db {knobs.halving_psnr_db}"
    if json:
        show_json({"adaptive": _knobs(knobs), "images": rows, "totals": totals})
    else:
        _show(title, rows, totals)
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _files(given: Sequence[Path]) -> list[Path]:
    """Files as they are named, folders' images in the order of their names."""
    found: list[Path] = []
    for path in given:
        if not path.is_dir():
            found.append(path)
            continue
        found += sorted(each for each in path.rglob("*") if each.suffix.lower() in PICTURE_SUFFIXES and each.is_file())
    return found


def _knobs(knobs: Adaptive) -> dict[str, int]:
    return {"floor_pixels": knobs.floor_pixels, "halving_psnr_db": knobs.halving_psnr_db}


def _show(title: str, rows: Sequence[dict[str, object]], totals: dict[str, object]) -> None:
    shown = [[str(row.get(key, "")) for key in _COLUMNS] for row in rows]
    show_table(title, tuple(_COLUMNS.values()), shown)
    say(_LEGEND)
    many = "" if totals["images"] == 1 else "s"
    typer.echo(
        f"{totals['images']} image{many}, {totals['adapted']} smaller: "
        f"{totals['tokens_under_caps']} tokens become {totals['tokens']} ({totals['saved']} less)"
    )


def _totals(rows: Sequence[dict[str, object]]) -> dict[str, object]:
    told = [row for row in rows if "error" not in row]
    before = sum(int(str(row["tokens_under_caps"])) for row in told)
    after = sum(int(str(row["tokens"])) for row in told)
    return {
        "images": len(told),
        "adapted": sum(row["why"] == "adapted" for row in told),
        "tokens_under_caps": before,
        "tokens": after,
        "saved": f"{1 - after / before:.0%}" if before else "0%",
    }


async def _all(files: Sequence[Path], trial: _Trial) -> list[dict[str, object]]:
    await trial.media.start()
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=len(files) < 2) as progress:
            bar = progress.add_task("images", total=len(files))
            rows = []
            for path in files:
                rows.append(await _row(path, await asyncio.to_thread(path.read_bytes), trial))
                progress.advance(bar)
            return rows
    finally:
        await trial.media.stop()


async def _row(path: Path, data: bytes, trial: _Trial) -> dict[str, object]:
    url = b"data:application/octet-stream;base64," + pybase64.b64encode(data)
    body = HeapBody(url)
    source = LongString(Span(0, len(url)), has_escapes=False)
    ref = SourceRef(path.name, source)
    part = ImagePart(("image",), (), source)
    policy, media = trial.adaptive, trial.media
    call = Call(policy.model, False, False, None, (part,), 0, 1)
    try:
        scope = media_scope(policy, trial.world)
        facts = (await media.look(body, (ref,), scope)).facts
        served = served_model(trial.world.book, policy, ())
        under_caps, adapted = (
            plan_images(each, served, call, facts, media.plan_version)[0] for each in (trial.without, policy)
        )
        sizes = (under_caps.target, adapted.target)
        psnr_db = await media.compare(body, ref, facts[0], sizes, scope)
    except GatewayError as error:
        say(f"{path.name}: {error.message}")
        return {"image": path.name, "error": error.code, "why": error.code, "message": error.message}
    return {
        "image": path.name,
        "original": str(under_caps.original),
        **_measured(facts[0].detail),
        "under_caps": str(under_caps.target),
        "adapted": str(adapted.target),
        "tokens_under_caps": under_caps.after.tokens,
        "tokens": adapted.after.tokens,
        "psnr_under_caps_db": psnr_db[0],
        "psnr_db": psnr_db[1],
        "why": _why(facts[0].detail, adapted),
    }


def _measured(detail: Detail | None) -> dict[str, object]:
    """The measure for people: what is left after halving the measured raster's sides, and the places of text."""
    if detail is None or not detail.losses:
        return {}
    halved_db = round(10 * log10(_PEAK / max(1, detail.losses[0])), 1)
    return {"halved_db": halved_db, "text_permille": detail.text_permille}


def _why(detail: Detail | None, plan: ImagePlan) -> str:
    if Change.ADAPTED in plan.changes:
        return "adapted"
    if detail is None:
        return "small"
    return "text" if detail.text_permille >= TEXT_PERMILLE else "detail"
