"""What one picture costs a worker, against the sum of the best native steps for its pixels.

The job is the worker's own code from the text of a data URL to the finished data URL: base64 decoded, digests made,
header read, picture decoded, resized, encoded, base64 written. It runs in a child process with the workers' malloc
settings, interleaved with the native steps in the same process, so that both sides have the same memory and machine.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import imagecodecs
import numpy as np
import pybase64

from benchmarks.classes import PictureClass, classes_of
from benchmarks.native import Step, native_steps
from benchmarks.pictures import build, own_pictures
from benchmarks.plain_pillow import PlainPillow, plain_pillow
from benchmarks.request import gateway_cost
from benchmarks.timing import Options, interleave, machine_facts
from gateway.errors import UnsupportedFormat
from gateway.media import codecs
from gateway.media.codecs.decoders import look_at
from gateway.media.codecs.detail import measure
from gateway.media.codecs.probe import probe_all
from gateway.media.codecs.scaling import stored_target
from gateway.media.messages import Bytes, Examine, Examined, Prepare, PreparedAt
from gateway.media.worker import Bench
from gateway.models.geometry import smart_resize
from gateway.ports import Accepts
from gateway.types import Change, Detail, Fidelity, ImageFormat, ImagePlan, ImageTokens, OutputFormat, Probe, Size

_ROUNDS = 15
_PILLOW = "plain Pillow"
# As in the image workers (gateway.media.process): keep freed memory, which decoders ask for again at once.
WORKER_ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824"
    ":glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864",
    "OMP_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    "VIPS_WARNING": "0",
}
_FACTOR, _MAX_TOKENS, _MIN_TOKENS = 32, 1_280, 4
_OUTPUT_BYTES = 64 * 1024 * 1024


class FixedCodec:
    """The configured backend behind the worker's own seam."""

    def __init__(self, backend: codecs.CodecBackend) -> None:
        self._backend = backend

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    def probe(self, data: bytes, accepts: Accepts) -> Probe:
        return look_at(data, documents=accepts.documents)

    def measure(self, data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]:
        return measure(data, probe, sizes)

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> codecs.Rendered:
        return self._backend.render(data, probe, plan)


def run(options: Options) -> dict[str, object]:
    """Measure in a child process. Returns one entry a class, whole requests of both fidelities, and the machine."""
    command = [sys.executable, "-m", "benchmarks.image", str(options.rounds or _ROUNDS), str(options.images or "")]
    done = subprocess.run(command, env={**os.environ, **WORKER_ENVIRONMENT}, stdout=subprocess.PIPE, check=True)
    measured: dict[str, object] = json.loads(done.stdout)
    pictures = own_pictures(options.images) if options.images else build()
    photo = next((picture for picture in pictures if picture.path.suffix in (".jpg", ".jpeg")), None)
    if photo is not None:
        rounds = options.rounds or _ROUNDS
        measured["request"] = {"picture": photo.name, **gateway_cost(photo, rounds, Fidelity.EXACT)}
        measured["request_fast"] = {"picture": photo.name, **gateway_cost(photo, rounds, Fidelity.FAST)}
    return measured


def _measure_all(rounds: int, classes: Sequence[PictureClass]) -> dict[str, object]:
    backend = codecs.load_backend(codecs.default_backend())
    report: dict[str, object] = {}
    with plain_pillow() as pillow:
        for each in classes:
            report[each.key] = _measure(each, backend, pillow, rounds)
    report["machine"] = machine_facts()
    report["backend"] = backend.fingerprint
    report["plain_pillow"] = pillow.version if pillow else None
    return report


def _measure(
    each: PictureClass, backend: codecs.CodecBackend, pillow: PlainPillow | None, rounds: int
) -> dict[str, object]:
    picture = each.picture
    data = picture.path.read_bytes()
    try:
        probe = probe_all(data)
    except UnsupportedFormat as error:
        return {"unsupported": error.message}
    plan = worker_plan(probe, backend.fingerprint, each.fidelity)
    rendered = backend.render(data, probe, plan)
    steps = native_steps(data, probe, plan, rendered.format)
    job, check = _worker_job(data, plan, backend)
    contenders: dict[str, Step] = {"worker job": job, **steps.contenders()}
    if pillow is not None:
        stored = stored_target(probe, plan)
        contenders[_PILLOW] = partial(pillow.prepare, picture.path, stored, rendered.format)
        pillow.pixels_ms.clear()
    timings = interleave(contenders, rounds)
    best = steps.best(timings)
    native_ms = sum(timing.median_ms for _, timing in best.values())
    native_min_ms = sum(timing.min_ms for _, timing in best.values())
    whole = timings["worker job"]
    return {
        "ratio_to_native": round(whole.median_ms / native_ms, 3),
        "ratio_of_minima": round(whole.min_ms / native_min_ms, 3),
        "job_ms": round(whole.median_ms, 2),
        "native_ms": round(native_ms, 2),
        "speedup_over_pillow": round(timings[_PILLOW].median_ms / whole.median_ms, 2) if pillow else None,
        "speedup_over_pillow_pixels": round(median(pillow.pixels_ms) / whole.median_ms, 2) if pillow else None,
        "psnr_db": _fidelity_db(each, probe, plan, backend, pillow) if pillow else None,
        "native_steps": {step: {"by": way, **timing.to_json()} for step, (way, timing) in best.items()},
        "all_steps": {name: timing.to_json() for name, timing in timings.items()},
        "from": {"size": str(probe.upright), "bytes": len(data), "source": picture.source},
        "to": {"size": str(rendered.size), "bytes": len(rendered.data), "format": rendered.format.value},
        "data_url_bytes": check,
    }


def _fidelity_db(
    each: PictureClass, probe: Probe, plan: ImagePlan, backend: codecs.CodecBackend, pillow: PlainPillow
) -> float | None:
    """PSNR of our pixels, before encoding, against plain Pillow's full decode and bicubic; ``None``: no difference."""
    lossless = backend.render(each.picture.path.read_bytes(), probe, replace(plan, output=OutputFormat.PNG))
    ours = imagecodecs.png_decode(lossless.data)
    with tempfile.NamedTemporaryFile(suffix=".ppm") as kept:
        pillow.prepare(each.picture.path, stored_target(probe, plan), ImageFormat.PNG, Path(kept.name))
        header, size, _, pixels = Path(kept.name).read_bytes().split(b"\n", 3)
    width, height = (int(side) for side in size.split())
    assert header == b"P6"
    theirs = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
    error = float(np.mean((theirs.astype(np.int32) - (ours if ours.ndim == 3 else ours[:, :, None])) ** 2))
    return round(10 * math.log10(255**2 / error), 1) if error else None


def worker_plan(probe: Probe, version: str, fidelity: Fidelity) -> ImagePlan:
    """The engine-equivalent target under the cap most operators set: 1280 tokens of 32x32 pixels."""
    token_pixels = _FACTOR * _FACTOR
    target = smart_resize(
        probe.upright, factor=_FACTOR, min_pixels=_MIN_TOKENS * token_pixels, max_pixels=_MAX_TOKENS * token_pixels
    )
    tokens = ImageTokens(1, 0, 2, (1, 1, 1), 1, 4)
    return ImagePlan(
        original=probe.upright,
        target=target,
        changes=(Change.RESIZED,),
        output=OutputFormat.AUTO,
        jpeg_quality=95,
        background=(255, 255, 255),
        version=version,
        before=tokens,
        after=tokens,
        fidelity=fidelity,
    )


def _worker_job(data: bytes, plan: ImagePlan, backend: codecs.CodecBackend) -> tuple[Step, int]:
    """The job as a contender, and the length of the data URL it made when it was tried."""
    media_type = {ImageFormat.JPEG: "image/jpeg"}.get(probe_all(data).format, f"image/{probe_all(data).format.value}")
    text = f"data:{media_type};base64,".encode() + pybase64.b64encode(data)
    output = mmap.mmap(-1, _OUTPUT_BYTES)
    bench = Bench(FixedCodec(backend), memoryview(text), output)
    source = Bytes(0, len(text), is_text=True, has_escapes=False)
    examine = Examine(source, b"k" * 32, len(text), 2**30)

    def job() -> int:
        examined = bench.answer(examine)
        assert isinstance(examined, Examined), examined
        prepared = bench.answer(Prepare(source, plan, examined.probe, len(text), wants_sha256=False))
        assert isinstance(prepared, PreparedAt), prepared
        return prepared.length

    return job, job()


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    head = f"{'picture':24} {'job':>8} {'native':>8} {'ratio':>6} {'x Pillow':>9} {'PSNR dB':>8}"
    lines = [f"{head}  CPU-ms, medians of one interleaved run"]
    for name, entry in report.items():
        if isinstance(entry, dict) and "ratio_to_native" in entry:
            numbers = f"{entry['job_ms']:8.1f} {entry['native_ms']:8.1f} {entry['ratio_to_native']:6.2f}"
            lines.append(f"{name:24} {numbers} {entry['speedup_over_pillow'] or '-':>9} {entry['psnr_db'] or '-':>8}")
    requests = ((name, report.get(name)) for name in ("request", "request_fast"))
    found = [(name, whole) for name, whole in requests if isinstance(whole, dict)]
    return lines + [f"{name} ({each['picture']}): {each['gateway_cpu_ms']} CPU-ms in all" for name, each in found]


def _main() -> None:
    rounds, folder = int(sys.argv[1]), sys.argv[2]
    print(json.dumps(_measure_all(rounds, classes_of(own_pictures(Path(folder)) if folder else build()))))


if __name__ == "__main__":
    _main()
