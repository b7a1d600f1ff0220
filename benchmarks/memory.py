"""What one picture of each class adds to an image worker's memory, against what was predicted for it.

Each class has a process of its own with the worker's code and malloc settings: its memory at rest, then the highest it
ever had (VmHWM) while it prepared the picture. Workers keep what they once had, so whether they grow is judged in one
that goes through all classes several times, from the end of the first pass on. What is above the cap is refused by its
header.
"""

from __future__ import annotations

import json
import mmap
import os
import statistics
import struct
import subprocess
import sys
import time
from itertools import accumulate
from pathlib import Path

import numpy as np
import simplejpeg

from benchmarks.classes import classes_of
from benchmarks.image import WORKER_ENVIRONMENT, FixedCodec, worker_plan
from benchmarks.pictures import build, own_pictures
from benchmarks.timing import Options, machine_facts
from gateway.media import codecs
from gateway.media.cost import predicted_bytes
from gateway.media.messages import Bytes, Examine, Examined, Failed, Prepare, PreparedAt
from gateway.media.worker import Bench
from gateway.types import Fidelity

_MIB = 1024 * 1024
_OUTPUT_BYTES = 64 * _MIB
_PASSES = 3
_BOMB_SIDE, _CAP_PIXELS, _REFUSALS = 30_000, 100_000_000, 25
_SMALL = simplejpeg.encode_jpeg(np.zeros((64, 64, 3), np.uint8))  # loads what is loaded at the first picture


def run(options: Options) -> dict[str, object]:
    """One entry a class in MiB; ``all``: one worker through every class, ``_PASSES`` times; ``beyond_cap_cpu_ms``."""
    classes = classes_of(own_pictures(options.images) if options.images else build())
    report: dict[str, object] = {}
    for each in classes:
        report[each.key] = _child([(str(each.picture.path), each.fidelity.value)])
    whole = _child([(str(each.picture.path), each.fidelity.value) for each in classes] * _PASSES)
    report["all"] = whole
    report["beyond_cap_cpu_ms"] = whole["beyond_cap_cpu_ms"]
    report["machine"] = machine_facts()
    return report


def _child(tasks: list[tuple[str, str]]) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.memory"]
    environment = {**os.environ, **WORKER_ENVIRONMENT}
    done = subprocess.run(
        command, input=json.dumps(tasks), text=True, env=environment, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    lines = [f"{'picture':28} {'growth':>8} {'predicted':>10}  MiB over an idle worker"]
    for name, entry in report.items():
        if isinstance(entry, dict) and "growth_mib" in entry:
            lines.append(f"{name:28} {entry['growth_mib']:8} {entry['predicted_mib'] or '-':>10}")
    return [*lines, f"refusing {_BOMB_SIDE}x{_BOMB_SIDE} by its header: {report['beyond_cap_cpu_ms']} CPU-ms"]


def _measured(tasks: list[tuple[str, str]]) -> dict[str, object]:
    backend = codecs.load_backend(codecs.default_backend())
    files = {path: Path(path).read_bytes() for path, _ in tasks}
    # Sources stand in memory before the first measurement, as they do in the slab, which is nobody's own memory.
    slab = memoryview(b"".join((_SMALL, *files.values())))
    starts = dict(zip(files, accumulate(map(len, files.values()), initial=len(_SMALL)), strict=False))
    bench = Bench(FixedCodec(backend), slab, mmap.mmap(-1, _OUTPUT_BYTES))
    _prepare(bench, Bytes(0, len(_SMALL), is_text=False, has_escapes=False), Fidelity.EXACT)
    idle_bytes = _status_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest resident size (proc(5))
    kept, predicted = [], 0
    for path, fidelity in tasks:
        where = Bytes(starts[path], len(files[path]), is_text=False, has_escapes=False)
        predicted = max(predicted, _prepare(bench, where, Fidelity(fidelity)))
        kept.append(_status_bytes("VmRSS") - idle_bytes)
    return {
        "growth_mib": round((_status_bytes("VmHWM") - idle_bytes) / _MIB, 1),
        "predicted_mib": round(predicted / _MIB, 1),
        "kept_by_pass_mib": [round(at / _MIB, 1) for at in kept[len(set(tasks)) - 1 :: len(set(tasks))]],
        "beyond_cap_cpu_ms": _refusal_cpu_ms(FixedCodec(backend)),
    }


def _prepare(bench: Bench, where: Bytes, fidelity: Fidelity) -> int:
    """Look at a file and prepare it; the bytes that were predicted for it. A format that is not there predicts none."""
    examined = bench.answer(Examine(where, b"k" * 32, 2**30, 2**30))
    if isinstance(examined, Failed):
        return 0
    assert isinstance(examined, Examined), examined
    question = Prepare(where, worker_plan(examined.probe, "", fidelity), examined.probe, 2**30, wants_sha256=False)
    prepared = bench.answer(question)
    assert isinstance(prepared, PreparedAt), prepared
    return predicted_bytes(question)


def _refusal_cpu_ms(codec: FixedCodec) -> float:
    """A PNG whose header states 900 megapixels, looked at with the cap that policies have by default."""
    header = struct.pack(">IIBBBBB", _BOMB_SIDE, _BOMB_SIDE, 8, 2, 0, 0, 0)
    rows = struct.pack(">I", 400_000) + b"IDAT" + bytes(400_000) + bytes(4)
    end = b"\0\0\0\0IEND\xaeB`\x82"
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + bytes(4) + rows + end
    bench = Bench(codec, memoryview(bomb), mmap.mmap(-1, _OUTPUT_BYTES))
    where = Bytes(0, len(bomb), is_text=False, has_escapes=False)
    taken = []
    for _ in range(_REFUSALS):
        began_s = time.process_time()
        refused = bench.answer(Examine(where, b"k" * 32, len(bomb), _CAP_PIXELS))
        taken.append(1e3 * (time.process_time() - began_s))
        assert isinstance(refused, Failed), refused
    return round(statistics.median(taken), 3)


def _status_bytes(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_measured([(path, fidelity) for path, fidelity in json.load(sys.stdin)])))
