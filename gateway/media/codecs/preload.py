"""Everything that a library would load when it is first used, loaded at once: a confined worker opens no file any more.

Decided here: which lazy parts there are. Not decided here: when the box closes (``confine``).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import imagecodecs
from PIL import Image

# Each function of imagecodecs comes out of a shared library that its name loads. Tests compare the list with the code.
FUNCTIONS = (
    "avif_decode", "bmp_decode", "cms_profile", "cms_transform", "gif_decode", "jpeg2k_decode", "jpeg8_decode",
    "png_decode", "webp_decode",
)  # fmt: skip
# Decoders that are not installed everywhere.
_OPTIONAL = ("pillow_heif",)


def preload() -> None:
    """Load what is there; what is not is somebody else's error to raise."""
    for function in FUNCTIONS:
        getattr(imagecodecs, function)
    for module in _OPTIONAL:
        if find_spec(module) is not None:
            import_module(module)
    Image.preinit()  # PIL's writers are modules of their own
