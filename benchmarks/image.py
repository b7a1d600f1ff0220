"""What one picture costs a worker, against the sum of the best native steps for its pixels.

The job is the worker's own code from the text of a data URL to the finished data URL: base64 decoded, digests made,
header read, picture decoded, resized, encoded, base64 written. It runs in a child process with the workers' malloc
settings, interleaved with the native steps in the same process, so that both sides have the same memory and machine.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pybase64

from benchmarks.native import Step, native_steps
from benchmarks.pictures import Picture, build, own_pictures
from benchmarks.request import gateway_cost
from benchmarks.timing import Options, Timing, interleave, machine_facts
from gateway.media import codecs
from gateway.media.codecs.decoders import look_at
from gateway.media.codecs.probe import probe_all
from gateway.media.messages import Bytes, Examine, Examined, Prepare, PreparedAt
from gateway.media.worker import Bench
from gateway.models.geometry import smart_resize
from gateway.ports import Accepts
from gateway.types import Change, ImageFormat, ImagePlan, ImageTokens, OutputFormat, Probe

_ROUNDS = 15
# As in the image workers (gateway.media.process): keep freed memory, which decoders ask for again at once.
_WORKER_ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824"
    ":glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864",
    "OMP_NUM_THREADS": "1",
    "VIPS_CONCURRENCY": "1",
    "VIPS_WARNING": "0",
}
_FACTOR, _MAX_TOKENS, _MIN_TOKENS = 32, 1_280, 4
_OUTPUT_BYTES = 64 * 1024 * 1024
_KEYS = {
    "phone-12mp": "jpeg_12mp",
    "phone-12mp-portrait": "jpeg_12mp_portrait",
    "camera-48mp": "jpeg_48mp",
    "progressive": "jpeg_12mp_progressive",
    "scan-a4": "jpeg_a4_scan",
    "phone-screenshot": "png_screenshot",
    "dashboard-4k": "png_4k_dashboard",
    "photo-webp": "webp_12mp",
}


class _FixedCodec:
    """The configured backend behind the worker's own seam."""

    def __init__(self, backend: codecs.CodecBackend) -> None:
        self._backend = backend

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    def probe(self, data: bytes, accepts: Accepts) -> Probe:
        return look_at(data, documents=accepts.documents)

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> codecs.Rendered:
        return self._backend.render(data, probe, plan)


def run(options: Options) -> dict[str, object]:
    """Measure in a child process. Returns one entry a picture, and the machine."""
    command = [sys.executable, "-m", "benchmarks.image", str(options.rounds or _ROUNDS), str(options.images or "")]
    done = subprocess.run(command, env={**os.environ, **_WORKER_ENVIRONMENT}, stdout=subprocess.PIPE, check=True)
    measured: dict[str, object] = json.loads(done.stdout)
    pictures = own_pictures(options.images) if options.images else build()
    photo = next((picture for picture in pictures if picture.path.suffix in (".jpg", ".jpeg")), None)
    if photo is not None:
        measured["request"] = {"picture": photo.name, **gateway_cost(photo, options.rounds or _ROUNDS)}
    return measured


def _measure_all(rounds: int, pictures: Sequence[Picture], keys: dict[str, str]) -> dict[str, object]:
    backend = codecs.load_backend(codecs.default_backend())
    report: dict[str, object] = {}
    for picture in pictures:
        key = keys.get(picture.name)
        if key is not None:
            report[key] = _measure(picture, backend, rounds)
    report["machine"] = machine_facts()
    report["backend"] = backend.fingerprint
    return report


def _measure(picture: Picture, backend: codecs.CodecBackend, rounds: int) -> dict[str, object]:
    data = picture.path.read_bytes()
    probe = probe_all(data)
    plan = _plan(probe, backend.fingerprint)
    rendered = backend.render(data, probe, plan)
    steps = native_steps(data, probe, plan, rendered.format)
    job, check = _worker_job(data, plan, backend)
    timings = interleave({"worker job": job, **steps.contenders()}, rounds)
    best = {step: _fastest(step, timings) for step in ("decode", "resize", "encode")}
    native_ms = sum(timing.median_ms for _, timing in best.values())
    native_min_ms = sum(timing.min_ms for _, timing in best.values())
    whole = timings["worker job"]
    return {
        "ratio_to_native": round(whole.median_ms / native_ms, 3),
        "ratio_of_minima": round(whole.min_ms / native_min_ms, 3),
        "job_ms": round(whole.median_ms, 2),
        "native_ms": round(native_ms, 2),
        "native_steps": {step: {"by": way, **timing.to_json()} for step, (way, timing) in best.items()},
        "all_steps": {name: timing.to_json() for name, timing in timings.items()},
        "from": {"size": str(probe.upright), "bytes": len(data), "source": picture.source},
        "to": {"size": str(rendered.size), "bytes": len(rendered.data), "format": rendered.format.value},
        "data_url_bytes": check,
    }


def _fastest(step: str, timings: dict[str, Timing]) -> tuple[str, Timing]:
    ways = {name.removeprefix(f"{step}: "): timing for name, timing in timings.items() if name.startswith(f"{step}: ")}
    way = min(ways, key=lambda name: ways[name].median_ms)
    return way, ways[way]


def _plan(probe: Probe, version: str) -> ImagePlan:
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
    )


def _worker_job(data: bytes, plan: ImagePlan, backend: codecs.CodecBackend) -> tuple[Step, int]:
    """The job as a contender, and the length of the data URL it made when it was tried."""
    media_type = {ImageFormat.JPEG: "image/jpeg"}.get(probe_all(data).format, f"image/{probe_all(data).format.value}")
    text = f"data:{media_type};base64,".encode() + pybase64.b64encode(data)
    output = mmap.mmap(-1, _OUTPUT_BYTES)
    bench = Bench(_FixedCodec(backend), memoryview(text), output)
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
    lines = [f"{'picture':24} {'job':>8} {'native':>8} {'ratio':>6}  CPU-ms, medians of one interleaved run"]
    for name, entry in report.items():
        if isinstance(entry, dict) and "ratio_to_native" in entry:
            lines.append(f"{name:24} {entry['job_ms']:8.1f} {entry['native_ms']:8.1f} {entry['ratio_to_native']:6.2f}")
    if isinstance(whole := report.get("request"), dict):
        lines.append(f"whole request ({whole['picture']}): {whole['gateway_cpu_ms']} CPU-ms in all processes")
    return lines


def _main() -> None:
    rounds, folder = int(sys.argv[1]), sys.argv[2]
    pictures = own_pictures(Path(folder)) if folder else build()
    keys = {picture.name: picture.name for picture in pictures} if folder else _KEYS
    print(json.dumps(_measure_all(rounds, pictures, keys)))


if __name__ == "__main__":
    _main()
