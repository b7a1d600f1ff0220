"""What a task's cap costs in legibility: text read back from the original, from ours, and from the engine's own shrink.

For every task of the built-in policy and of `policies/`, and every kind of writing, the gateway's own plan is carried
out by the codec backend. Read is what the served model would see: our file and the original both brought to the grid by
the model's own processor, under the task's cap. The error rate is that of letters (`reading`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import imagecodecs
import numpy as np
from PIL import Image

from benchmarks.reading import Pixels, error_rate, read_text, version
from benchmarks.timing import Options, machine_facts
from benchmarks.written import Writing, writings
from gateway.config.policies import load_policies
from gateway.media.codecs import CodecBackend, default_backend, load_backend
from gateway.media.codecs.probe import probe_all
from gateway.models.book import ModelBook, ServedModel
from gateway.models.catalog import shipped_catalog
from gateway.policy import EffectivePolicy, Geometry, PolicySet, builtin_policies, resolve
from gateway.stages.planning import plan_images
from gateway.stages.shares import own_caps
from gateway.types import Call, ContentDigest, ImagePart, ImagePlan, PlacementDigest, Size, SourceFacts

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
BUILT_IN = "built-in"
_POLICIES = Path(__file__).parent.parent / "policies"
_IMAGE = ImagePart(("image",), (), "data:")
_CALL = Call(MODEL, False, False, None, (_IMAGE,), 0, 1)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a shipped policy."""

    policy: str
    task: str
    effective: EffectivePolicy


@dataclass(slots=True)
class Reader:
    """Reads each picture once."""

    known: dict[bytes, str] = field(default_factory=dict)

    def error_rate(self, pixels: Pixels, at: Size, text: str) -> float:
        key = sha256(f"{pixels.shape} {at} ".encode() + pixels.tobytes()).digest()
        if key not in self.known:
            self.known[key] = read_text(pixels, at)
        return error_rate(self.known[key], text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Error rates of letters; ``ours`` and ``engine`` ``None`` where the policy refuses the image."""

    delivered: Size
    format: str
    tokens: int
    original: float
    ours: float | None
    engine: float | None

    def to_json(self) -> dict[str, object]:
        rates = {"original": self.original, "ours": self.ours, "engine": self.engine}
        rounded = {name: None if rate is None else round(rate, 4) for name, rate in rates.items()}
        return {"delivered": str(self.delivered), "format": self.format, "tokens": self.tokens, **rounded}


def shipped_tasks() -> Iterator[Task]:
    """Every task of the built-in policy, then of `policies/`, in the order of names."""
    for builtin, policies in ((True, builtin_policies()), (False, load_policies(_POLICIES))):
        for tenant in sorted(policies.tenants):
            for task in policies.tenants[tenant].tasks:
                yield Task(BUILT_IN if builtin else tenant, task, _effective(policies, tenant, task))


def _effective(policies: PolicySet, tenant: str, task: str) -> EffectivePolicy:
    known = next(name for name in policies.tenants if name == tenant)
    return resolve(policies, tenant=known, header_task=task, model=MODEL, body_task=None)


def measure(writing: Writing, policy: EffectivePolicy, backend: CodecBackend, reader: Reader) -> Outcome:
    """Plan, deliver, let the model's processor bring both to its grid, read."""
    served = ModelBook(shipped_catalog()).serve(MODEL, ())
    probe = probe_all(writing.file)
    facts = SourceFacts(len(writing.file), PlacementDigest(bytes(16)), ContentDigest(bytes(32)), probe, canonical=True)
    (plan,) = plan_images(policy, served, _CALL, [facts], "legibility")
    at = probe.upright
    original = reader.error_rate(writing.pixels, at, writing.text)
    keeps = policy.geometry is Geometry.PRESERVE or policy.shadow
    if _refused(policy, at):
        return Outcome(at, "refused", plan.before.tokens, original, None, None)
    cap = None if keeps else own_caps(policy, _CALL)[0].pixels
    ours, written = _delivered(writing, plan, backend)
    seen_ours = as_seen(ours, served, None)
    seen_engine = as_seen(writing.pixels, served, cap)
    return Outcome(
        plan.target,
        written,
        plan.after.tokens,
        original,
        reader.error_rate(seen_ours, at, writing.text),
        reader.error_rate(seen_engine, at, writing.text),
    )


def _refused(policy: EffectivePolicy, size: Size) -> bool:
    """As the rule `max_pixels` does: what may not be resized cannot meet a number."""
    keeps = policy.geometry is Geometry.PRESERVE and not policy.shadow
    return keeps and policy.max_pixels is not None and size.pixels > policy.max_pixels


def _delivered(writing: Writing, plan: ImagePlan, backend: CodecBackend) -> tuple[Pixels, str]:
    if plan.keeps_file:
        return writing.pixels, "untouched"
    rendered = backend.render(writing.file, probe_all(writing.file), plan)
    decode = {"jpeg": imagecodecs.jpeg8_decode, "png": imagecodecs.png_decode}[rendered.format.value]
    return np.asarray(decode(rendered.data)), rendered.format.value


def as_seen(pixels: Pixels, served: ServedModel, cap_pixels: int | None) -> Pixels:
    """What the model's processor makes of a raster: bicubic, horizontally first, under its cap or a smaller one."""
    checkpoint = served.checkpoint
    if cap_pixels is not None:
        checkpoint = checkpoint.with_(max_pixels=min(cap_pixels, checkpoint.max_pixels))
    height, width = pixels.shape[:2]
    target = served.family.engine_size(Size(width, height), checkpoint)
    if (target.width, target.height) == (width, height):
        return pixels
    picture = Image.fromarray(pixels).resize((target.width, height), Image.Resampling.BICUBIC)
    return np.asarray(picture.resize((target.width, target.height), Image.Resampling.BICUBIC))


def run(options: Options) -> dict[str, object]:
    """Every task and kind. Pictures of one's own have no known text."""
    if options.images is not None:
        raise SystemExit("legibility reads pictures whose text is known; it takes no --images")
    reader, backend = Reader(), load_backend(default_backend())
    rows: list[dict[str, object]] = []
    written = writings()
    for task in shipped_tasks():
        for writing in written:
            outcome = measure(writing, task.effective, backend, reader)
            rows.append({"policy": task.policy, "task": task.task, "kind": writing.kind, **outcome.to_json()})
    kinds = {each.kind: {"size": _size(each), "letters": len(" ".join(each.text.split()))} for each in written}
    return {
        "model": MODEL,
        "reader": version(),
        "backend": backend.fingerprint,
        "kinds": kinds,
        "tasks": rows,
        "machine": machine_facts(),
    }


def _size(writing: Writing) -> str:
    height, width = writing.pixels.shape[:2]
    return f"{width}x{height}"


def table(report: dict[str, object]) -> list[str]:
    """One line a task and kind: percent of letters that are read wrongly."""
    rows = report["tasks"]
    assert isinstance(rows, list)
    head = f"{'policy task':28} {'kind':20} {'delivered':>22} {'tokens':>6} {'original':>9} {'ours':>8} {'engine':>8}"
    lines = [f"{report['model']}, {report['reader']}: percent of letters read wrongly", head]
    for row in rows:
        rates = " ".join(f"{shown(row[name]):>8}" for name in ("original", "ours", "engine"))
        what = f"{row['delivered']} {row['format']}"
        lines.append(f"{row['policy'] + ' ' + row['task']:28} {row['kind']:20} {what:>22} {row['tokens']:6}  {rates}")
    return lines


def shown(rate: float | None) -> str:
    """A rate in percent."""
    return "–" if rate is None else f"{100 * rate:.1f}"
