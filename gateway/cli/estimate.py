"""``vlm-gateway estimate``: what images cost in which model, from their sizes alone.

Decided here: how sizes are given and what the table shows. Models of closed APIs stand beside the others, one row for
each level of detail. Not decided here: any number (``models``).
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.clips import clip_row, read_clip
from gateway.cli.output import fail, show_json, show_table
from gateway.config.policies import PolicyProblems, load_policies
from gateway.errors import GatewayError
from gateway.media.codecs.probe import probe_all, sniff
from gateway.models.book import ModelBook, ServedModel
from gateway.models.catalog import shipped_catalog
from gateway.models.closed import ClosedProfile, closed_profile
from gateway.models.hub.layers import kv_element_bytes
from gateway.models.hub.reading import Section
from gateway.models.image_price import image_price
from gateway.models.kv import tensor_share
from gateway.models.pace import Pace
from gateway.models.video import Clip
from gateway.policy.effective import EffectivePolicy
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet, build_policy_set
from gateway.policy.resolve import resolve
from gateway.types import ImageFormat, Probe, Size, TenantId

_PIXELS = re.compile(r"^\d{1,9}(x\d{1,9}){0,4}$")
# Of vLLM 0.32's (config/cache.py) and SGLang's; what packs elements closer (nvfp4, turboquant) is not counted.
_CACHE_DTYPE = re.compile(r"^(auto|bfloat16|bf16|float16|half|(fp8|int8)(_\w+)?)$")
_SIZE = re.compile(r"^(\d{1,9})[xX×](\d{1,9})$")
# One H100, for orders of magnitude only; a gateway that serves knows its backends' own pace.
_PACE = Pace()
# Key of a row -> heading of its column.
_COLUMNS = {
    "image": "image",
    "model": "model",
    "detail": "detail",
    "size": "size",
    "target": "target",
    "grid": "grid",
    "tokens": "tokens",
    "tokens_original": "was",
    "saved": "saved",
    "position_advance": "positions",
    "kv_mb": "KV MB",
    "prefill_ms": "prefill ms",
    "encode_ms": "encode ms",
}


def read_size(text: str) -> Size:
    """``1280x720`` or an image file's upright size. Exits with a message for anything else."""
    given = _SIZE.match(text)
    if given:
        return Size(int(given[1]), int(given[2]))
    path = Path(text)
    try:
        if not path.is_file():
            raise fail(f"{text} is neither a size (1280x720) nor a file.", code=2)
        return _look_at(path.read_bytes()).upright
    except GatewayError as error:
        raise fail(f"{text}: {error.message}", code=2) from None
    except OSError as error:
        raise fail(f"{text[:128]}: cannot be read: {error.strerror}", code=2) from None


def _look_at(data: bytes) -> Probe:
    if sniff(data) is not ImageFormat.PDF:
        return probe_all(data)
    from gateway.media.codecs.decoders import look_at  # noqa: PLC0415  loads every image library

    return look_at(data, documents=True)


def read_pixels(text: str) -> int:
    """``1310720`` or ``1280x32x32``, at least one pixel. Raises typer.BadParameter for anything else."""
    pixels = math.prod(int(side) for side in text.split("x")) if _PIXELS.match(text) else 0
    if pixels < 1:
        raise typer.BadParameter(f"{text!r} is neither a number of pixels (1310720) nor a product (1280x32x32).")
    return pixels


def read_cache_dtype(text: str) -> str:
    """A type of KV cache whose elements are whole bytes. Raises typer.BadParameter for anything else."""
    if not _CACHE_DTYPE.match(text):
        raise typer.BadParameter(f"{text!r} is none that is counted: auto, bfloat16, float16, fp8, fp8_*, int8_*.")
    return text


def load_policy_set(directory: Path | None) -> PolicySet:
    """The policies of a directory, or the built-in default. Exits with every problem."""
    if directory is None:
        return build_policy_set(())[0]
    try:
        return load_policies(directory)
    except PolicyProblems as error:
        raise fail("The policies cannot be used:", [str(problem) for problem in error.problems], code=2) from None


def estimate(  # noqa: PLR0913, PLR0917  # one parameter per flag
    images: Annotated[
        list[str], typer.Argument(help="Sizes (1280x720), clips (1280x720:60s@24), image and video files.")
    ],
    model: Annotated[list[str] | None, typer.Option(help="Model; repeat to compare.")] = None,
    task: Annotated[str | None, typer.Option(help="Task of the policy whose cap applies.")] = None,
    tenant: Annotated[str, typer.Option(help="Tenant of the policy.")] = DEFAULT_TENANT,
    policies: Annotated[Path | None, typer.Option(help="Directory of policy files.", file_okay=False)] = None,
    max_pixels: Annotated[
        int | None,
        typer.Option(help="Pixel cap the engine was started with (1310720 or 1280x32x32).", parser=read_pixels),
    ] = None,
    tensor_parallel: Annotated[int, typer.Option(help="GPUs that share the model: KV of one of them.", min=1)] = 1,
    kv_cache_dtype: Annotated[
        str, typer.Option(help="The engine's --kv-cache-dtype.", parser=read_cache_dtype)
    ] = "auto",
    config: Annotated[
        Path | None, typer.Option(help="gateway.yaml: its models, aliases and policies.", exists=True, dir_okay=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print tokens, target size, KV bytes and rough cost of images, per model."""
    policy_set, book = _given(config, policies)
    element_bytes = kv_element_bytes(Section("config.json", {}), kv_cache_dtype)
    rows = []
    for name in model or ["Qwen/Qwen3-VL-8B-Instruct"]:
        policy = resolve_for(policy_set, tenant, task, name)
        served = book.serve(policy.model or name, ())
        profile = closed_profile(served.name)
        if profile is not None and not served.match.known:
            rows += [
                _closed_row(text, read_size(text), name, profile, each) for text in images for each in profile.levels
            ]
            continue
        served = _on_one_rank(served, tensor_parallel)
        for text in images:
            clip = _clip_of(text)
            if clip is not None:
                rows.append(clip_row(text, clip, served))
            else:
                rows.append(_row(text, read_size(text), served, policy.max_pixels, max_pixels, element_bytes))
    if json:
        show_json(rows)
    else:
        _show(rows)
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _given(config: Path | None, policies: Path | None) -> tuple[PolicySet, ModelBook]:
    """Policies, and what is known of models: as shipped, or as a configuration has them."""
    policy_set = load_policy_set(policies)
    if config is None:
        return policy_set, ModelBook(shipped_catalog())
    from gateway.assembly.wiring import load_world  # noqa: PLC0415  these two double the time of the command
    from gateway.cli.serve import settings_from  # noqa: PLC0415

    settings = settings_from(config, None, {"policies": None if policies is None else str(policies)})
    try:
        world = load_world(settings, b"\0" * 32)
    except (PolicyProblems, ValueError) as error:
        raise fail("The configuration cannot be used:", [str(error)], code=2) from None
    return world.policies, world.book


def _clip_of(text: str) -> Clip | None:
    try:
        return read_clip(text)
    except GatewayError as error:
        raise fail(f"{text}: {error.message}", code=2) from None
    except OSError:
        return None  # whoever reads sizes says why


def _show(rows: list[dict[str, object]]) -> None:
    shown = [[str(row.get(key, "")) for key in _COLUMNS] for row in rows]
    show_table("Image tokens", tuple(_COLUMNS.values()), shown)
    for note in sorted({str(row["note"]) for row in rows if row.get("note")}):
        typer.echo(f"note: {note}", err=True)


def resolve_for(policies: PolicySet, tenant: str, task: str | None, model: str) -> EffectivePolicy:
    """The effective policy of a tenant named on the command line. Exits with what would be right."""
    if TenantId(tenant) not in policies.tenants:
        raise fail(f"There is no tenant {tenant!r}; known: {', '.join(policies.tenants)}.", code=2)
    try:
        return resolve(policies, tenant=TenantId(tenant), header_task=task, model=model, body_task=None)
    except GatewayError as error:
        raise fail(error.message, code=2) from None


def _on_one_rank(served: ServedModel, ranks: int) -> ServedModel:
    kv = served.checkpoint.kv
    if kv is None or ranks == 1:
        return served
    return replace(served, checkpoint=replace(served.checkpoint, kv=tensor_share(kv, ranks)))


def _row(  # one parameter per part of the row
    text: str, size: Size, served: ServedModel, cap: int | None, max_pixels: int | None, element_bytes: int
) -> dict[str, object]:
    checkpoint = served.checkpoint if max_pixels is None else served.checkpoint.with_(max_pixels=max_pixels)
    row: dict[str, object] = {"image": text, "model": served.name, "size": str(size), "note": served.match.note}
    try:
        before = served.family.image_tokens(size, served.checkpoint)
        target = served.family.plan(size, checkpoint, cap_pixels=cap, cap_tokens=None)
    except GatewayError as error:
        return row | {"error": error.code, "target": error.code, "message": error.message}
    after = target.tokens
    row |= {
        "target": str(target.size),
        "reason": target.reason.value,
        "grid": f"{after.grid[1]}x{after.grid[2]}",
        "tokens": after.tokens,
        "prompt_tokens": after.prompt_tokens,
        "tokens_original": before.tokens,
        "saved": f"{1 - after.tokens / before.tokens:.0%}" if after.tokens < before.tokens else "",
        "position_advance": after.position_advance,
    }
    price = image_price(after, checkpoint, _PACE, element_bytes=element_bytes)
    if price.kv_bytes is not None:
        row["kv_mb"] = round(price.kv_bytes / 1e6, 1)
    if price.prefill_ms is not None:
        row["prefill_ms"] = round(price.prefill_ms, 1)
    if price.encode_ms is not None:
        row["encode_ms"] = round(price.encode_ms, 1)
    return row


def _closed_row(text: str, size: Size, model: str, profile: ClosedProfile, level: str) -> dict[str, object]:
    row: dict[str, object] = {"image": text, "model": model, "detail": level, "size": str(size)}
    try:
        price = profile.image_tokens(size, level)
    except GatewayError as error:
        return row | {"error": error.code, "target": error.code, "message": error.message}
    note = f"{model}: as its vendor documents it, not observed; detail defaults to {profile.default_level}"
    return row | {"target": str(price.size), "tokens": price.tokens, "tokens_original": price.tokens, "note": note}
