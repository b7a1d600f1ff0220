"""What the image libraries of this machine are and how fast they resize: for ``doctor``, never for a decision."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
import PIL
from PIL import Image, _imaging

from gateway.media.codecs import available_backends, load_backend
from gateway.media.codecs.decoders import extras
from gateway.media.codecs.decoders.vips import load_vips

# CPU-ms for this resize on Zen 3: AVX2 about 5, SSE4 6.5, plain Pillow 45, a build without -O3 far more.
_FROM, _TO = (2016, 1512), (1312, 960)
_ROUNDS = 5
_PACKAGES = ("simplejpeg", "imagecodecs", "kornia-rs", "pyvips", "isal", "numpy")
# A prefix of AVX2 instructions on 256-bit registers (VEX.256.66.0F38); an AVX2 build holds thousands.
_AVX2_PREFIX = b"\xc4\xe2\x7d"
_AVX2_MINIMUM = 100


def inspect_libraries() -> dict[str, object]:
    """Versions, fingerprints, SIMD level and the timed resize in CPU milliseconds."""
    vips = load_vips()
    return {
        "fingerprints": {name: load_backend(name).fingerprint for name in available_backends()},
        "pil": PIL.__version__,
        "libvips": ".".join(str(vips.version(part)) for part in range(3)),
        **{
            package: version(package)
            for package in ("simplejpeg", "imagecodecs", "kornia-rs", "pyvips", "isal", "numpy")
        },
        "extras": " ".join(extras()) or "none (heif and pdf are not installed)",
        "simd": simd_level(),
        "resize_ms": round(1_000 * _timed_resize_s(), 1),
    }


def simd_level() -> str:
    """``avx2``, ``sse4`` or ``none``: what PIL's resizer was built with."""
    if ".post" not in PIL.__version__:
        return "none"
    library = Path(str(_imaging.__file__)).read_bytes()
    return "avx2" if library.count(_AVX2_PREFIX) >= _AVX2_MINIMUM else "sse4"


def _timed_resize_s() -> float:
    picture = Image.frombuffer("RGBX", _FROM, np.full((_FROM[1], _FROM[0], 4), 127, np.uint8), "raw", "RGBX", 0, 1)
    taken = []
    for _ in range(_ROUNDS):
        started = time.process_time()
        picture.resize(_TO, Image.Resampling.BICUBIC)
        taken.append(time.process_time() - started)
    return median(taken)
