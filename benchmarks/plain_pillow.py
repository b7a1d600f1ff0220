"""Plain Pillow as a contender: a service that opens, resizes and saves a picture with the wheel from PyPI.

Its job is the worker's: from the text of a data URL to the text of another, base64 by the standard library; what the
pixels alone took is told beside it.

It lives in an environment of its own, made on first use (``.bench/pillow``), because Pillow and pillow-simd own one
folder; and in a process of its own, with the C library's own malloc settings, as anybody would run it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import Elsewhere
from gateway.types import ImageFormat, Size

PILLOW_VERSION = "13.0.0"
_ENVIRONMENT = Path(__file__).parent.parent / ".bench" / "pillow"
_TUNING = "GLIBC_TUNABLES"

# Runs there: lines of JSON in, lines of JSON out. The file is read before the clock starts.
_PROGRAM = """
import base64, io, json, sys, time
import PIL
from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = None
print(json.dumps({"version": PIL.__version__}), flush=True)
for line in sys.stdin:
    task = json.loads(line)
    with open(task["path"], "rb") as file:
        text = base64.b64encode(file.read())
    began_s = time.process_time()
    data = base64.b64decode(text)
    pixels_began_s = time.process_time()
    with Image.open(io.BytesIO(data)) as image:
        picture = image
        if picture.mode in ("P", "RGBA", "LA", "PA") or "transparency" in picture.info:
            picture = picture.convert("RGBA")
            ground = Image.new("RGB", picture.size, (255, 255, 255))
            ground.paste(picture, mask=picture.getchannel("A"))
            picture = ground
        elif picture.mode != "L":
            picture = picture.convert("RGB")
        picture = picture.resize(task["stored"], Image.Resampling.BICUBIC)
        picture = ImageOps.exif_transpose(picture) if image.getexif().get(0x112, 1) != 1 else picture
    out = io.BytesIO()
    options = {"quality": 95, "subsampling": 0} if task["format"] == "JPEG" else {"compress_level": 1}
    picture.save(out, task["format"], **options)
    pixels_ms = 1e3 * (time.process_time() - pixels_began_s)
    base64.b64encode(out.getvalue())
    taken_ms = 1e3 * (time.process_time() - began_s)
    if task["keep"]:
        picture.convert("RGB").save(task["keep"], "PPM")
    print(json.dumps({"cpu_ms": taken_ms, "pixels_ms": pixels_ms}), flush=True)
"""


class PlainPillow:
    """The running process. ``version`` is that of the Pillow in it, ``pixels_ms`` what each job's pixels alone took."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pixels_ms: list[float] = []
        self.version = str(self._answer()["version"])

    def prepare(self, path: Path, stored: Size, written: ImageFormat, keep: Path | None = None) -> Elsewhere:
        """Open, resize to the size as stored, turn upright, save. ``keep``: where the unencoded pixels go (PPM)."""
        task = {
            "path": str(path),
            "stored": [stored.width, stored.height],
            "format": written.value.upper(),
            "keep": str(keep) if keep else "",
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.pixels_ms.append(float(str(answer["pixels_ms"])))
        return Elsewhere(float(str(answer["cpu_ms"])))

    def _answer(self) -> dict[str, object]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("plain Pillow's process ended")
        answer: dict[str, object] = json.loads(line)
        return answer


@contextmanager
def plain_pillow() -> Iterator[PlainPillow | None]:
    """``None`` where Pillow cannot be installed; the reason is printed."""
    python = _python()
    if python is None:
        yield None
        return
    environment = {name: value for name, value in os.environ.items() if name not in (_TUNING, "PYTHONPATH")}
    process = subprocess.Popen(
        [python, "-c", _PROGRAM], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield PlainPillow(process)
    finally:
        process.kill()
        process.wait()


def _python() -> Path | None:
    python = _ENVIRONMENT / "bin" / "python"
    marker = _ENVIRONMENT / f"pillow-{PILLOW_VERSION}"
    if marker.exists():
        return python
    print(f"installing Pillow {PILLOW_VERSION} into an environment of its own (once) ...", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(_ENVIRONMENT)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"pillow=={PILLOW_VERSION}"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"plain Pillow is left out: {error}", file=sys.stderr)
        return None
    marker.touch()
    return python
