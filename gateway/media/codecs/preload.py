"""Everything that a library would load when it is first used, loaded at once: a confined worker opens no file any more.

Decided here: which lazy parts there are. Not decided here: when the box closes (``confine``).
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import imagecodecs
from PIL import Image

# Each codec of imagecodecs is a shared library behind a module attribute.
_CODECS = ("bmp", "gif", "webp", "jpeg8", "avif", "jpeg2k")
# Decoders that are not installed everywhere.
_OPTIONAL = ("pillow_heif",)


def preload() -> None:
    """Load what is there; what is not is somebody else's error to raise."""
    for codec in _CODECS:
        getattr(imagecodecs, f"{codec}_decode")
    for module in _OPTIONAL:
        if find_spec(module) is not None:
            import_module(module)
    Image.preinit()  # PIL's writers are modules of their own
