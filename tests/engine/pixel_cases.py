"""Pictures of many shapes and encodings, and what the gateway makes of them under a cap that it shares with the model.

usage: python -m tests.engine.pixel_cases FOLDER BACKEND

Originals are written once; BACKEND (`pillow-simd`, `vips`, or `pillow`: the code of the first over whatever PIL the
interpreter finds) then writes what it delivers beside them, lossless and as the default policy would, by the gateway's
own plan. Runs in the gateway's environment; `pixel_values.py` compares in the engine's.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import imagecodecs
import numpy as np
import PIL
import simplejpeg
from numpy.typing import NDArray

from gateway.media.codecs import CodecBackend, load_backend
from gateway.media.codecs.pillow_simd import resize
from gateway.media.codecs.pipeline import Pipeline
from gateway.media.codecs.preload import preload
from gateway.media.codecs.probe import probe_all
from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.plan import PlanRules, plan_image
from gateway.types import ContentDigest, OutputFormat, PlacementDigest, SourceFacts
from tests.engine.pictures import png, with_orientation

Pixels = NDArray[np.uint8]
QWEN3, QWEN25 = "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"
CAP_TOKENS = 320
OUTPUTS = (OutputFormat.PNG, OutputFormat.AUTO)


@dataclass(frozen=True, slots=True)
class Case:
    """One original. ``cap_pixels`` is that of gateway and processor alike."""

    name: str
    model: str
    file: str
    cap_pixels: int


# Both sides shrink, by little, much, along one side; both grow; one grows while the other shrinks (the last rows).
_SHAPES = {
    QWEN3: ((585, 1266), (960, 540), (1008, 756), (677, 501), (1500, 350), (350, 1500), (30, 150), (300, 20)),
    QWEN25: ((585, 1266), (960, 540), (756, 1008), (577, 601), (1300, 250), (20, 20), (54, 20)),
}
_MIXED = {
    QWEN3: ((605, 530), (209, 1457), (1136, 277), (29, 1335)),
    QWEN25: ((746, 325), (266, 912), (1499, 162), (24, 145), (10, 2000)),
}


def noise(width: int, height: int) -> Pixels:
    """The hardest picture: every pixel by itself."""
    return np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)


def smooth(width: int, height: int) -> Pixels:
    """Slow waves, another for each colour."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    waves = [np.sin(x / 97 + band) + np.cos(y / (61 + 9 * band)) for band in range(3)]
    return np.clip(np.stack(waves, axis=2) * 62 + 128, 0, 255).astype(np.uint8)


def strokes(width: int, height: int) -> Pixels:
    """Thin dark strokes of all lengths on white, as text has them."""
    rng = np.random.default_rng(height)
    pixels = np.full((height, width, 3), 252, np.uint8)
    rows, columns = np.mgrid[0:height, 0:width]
    lettered = (rows % 24 < 15) & (rng.random((height // 3 + 1, width // 2 + 1))[rows // 3, columns // 2] < 0.4)
    pixels[lettered] = (30, 32, 60)
    return pixels


_KINDS = (noise, smooth, strokes)


def _orientation_jpeg(pixels: Pixels, orientation: int) -> bytes:
    return with_orientation(bytes(simplejpeg.encode_jpeg(pixels, quality=92, colorsubsampling="420")), orientation)


def _transparent(pixels: Pixels) -> bytes:
    alpha = np.broadcast_to(
        np.linspace(0, 255, pixels.shape[1]).astype(np.uint8)[None, :, None], (*pixels.shape[:2], 1)
    )
    return bytes(imagecodecs.png_encode(np.ascontiguousarray(np.dstack((pixels, alpha))), level=1))


def write_originals(folder: Path) -> list[Case]:
    """Every shape in one kind of picture or another, two in all; then encodings in one shape."""
    found = []

    def keep(name: str, model: str, data: bytes) -> None:
        (folder / name).write_bytes(data)
        side = shipped_catalog().find(model).checkpoint.factor
        found.append(Case(name.partition(".")[0], model, name, CAP_TOKENS * side * side))

    for model, brief in ((QWEN3, "qwen3"), (QWEN25, "qwen25")):
        for index, (width, height) in enumerate((*_SHAPES[model], *_MIXED[model])):
            for kind in _KINDS if index < 2 else (_KINDS[index % 3],):
                name = f"{brief}-{width}x{height}-{kind.__name__}.png"
                keep(name, model, png(kind(width, height)))
        base = strokes(950, 650)
        for orientation in range(1, 9):
            keep(f"{brief}-jpeg-turned-{orientation}.jpg", model, _orientation_jpeg(base, orientation))
        keep(f"{brief}-png-turned.png", model, png(base, orientation=6))
        keep(f"{brief}-transparent.png", model, _transparent(base))
        keep(f"{brief}-grey.png", model, bytes(imagecodecs.png_encode(np.ascontiguousarray(base[:, :, 0]), level=1)))
        keep(f"{brief}-webp-lossless.webp", model, bytes(imagecodecs.webp_encode(base, lossless=True)))
        keep(f"{brief}-webp.webp", model, bytes(imagecodecs.webp_encode(smooth(950, 650), level=85)))
    keep("qwen3-jpeg-large.jpg", QWEN3, _orientation_jpeg(smooth(1240, 930), 1))
    return found


def deliver(folder: Path, case: Case, backend: CodecBackend) -> dict[str, str]:
    """Write what this backend delivers: {output: file}. Fails where the plan would pass the original untouched."""
    data = (folder / case.file).read_bytes()
    probe = probe_all(data)
    checkpoint = shipped_catalog().find(case.model).checkpoint.with_(max_pixels=case.cap_pixels)
    facts = SourceFacts(len(data), PlacementDigest(bytes(16)), ContentDigest(bytes(32)), probe, canonical=True)
    rules = PlanRules(None, (255, 255, 255), OutputFormat.PNG, 95, preserve=False, version="pixels")
    plan = plan_image(facts, family_of(checkpoint.family), checkpoint, rules)
    if plan.target == plan.original:
        raise AssertionError(f"{case.name} is not resized: {plan}")
    written = {}
    for output in OUTPUTS:
        rendered = backend.render(data, probe, replace(plan, output=output))
        name = f"{case.name}.{backend.name}.{output.value}.{rendered.format.value}"
        (folder / name).write_bytes(rendered.data)
        written[output.value] = name
    return written


def _backend(name: str) -> CodecBackend:
    if name != "pillow":
        return load_backend(name)
    preload()
    assert ".post" not in PIL.__version__, "plain Pillow was asked for"
    return Pipeline("pillow", resize)


def main() -> None:
    """Print {case: {output: file}} as JSON."""
    folder, backend = Path(sys.argv[1]), _backend(sys.argv[2])
    cases = [Case(**each) for each in json.loads((folder / "cases.json").read_text())]
    delivered = {case.name: deliver(folder, case, backend) for case in cases}
    sys.stdout.write(json.dumps({"pil": PIL.__version__, "delivered": delivered}))


def as_json(cases: list[Case]) -> str:
    """The list that `main` reads."""
    return json.dumps([asdict(case) for case in cases])


if __name__ == "__main__":
    main()
