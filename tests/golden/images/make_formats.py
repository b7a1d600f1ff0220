"""Makes the small files of every format in ``formats/``, once; encoders change, so the files are kept, not the making.

Run in the gateway's environment: ``python -m tests.golden.images.make_formats``.
"""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import simplejpeg
from PIL import Image, ImageDraw

from benchmarks.drawing import draw_photo_like
from tests.media.codecs.samples import Pixels, heic, jpeg, png, saved, webp

FOLDER = Path(__file__).parent / "formats"


def photo(width: int, height: int) -> Pixels:
    """Clouds with a few sharp edges and letters."""
    picture = draw_photo_like(width, height, seed=4)
    draw = ImageDraw.Draw(picture)
    for row in range(20, height, 60):
        draw.rectangle((row, row // 2, row + 30, row // 2 + 12), fill=(row % 256, 200, 255 - row % 256))
        draw.text((12, row), "Order 48-2210, 1,280 tokens", fill=(20, 20, 30))
    return np.asarray(picture)


def page(width: int, height: int) -> Pixels:
    """Letters on white."""
    picture = Image.new("RGB", (width, height), (252, 252, 250))
    for row in range(8, height - 8, 16):
        ImageDraw.Draw(picture).text((8, row), "The quick brown fox jumps over 1,234 lazy dogs.", fill=(30, 30, 60))
    return np.asarray(picture)


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(exist_ok=True)
    small, text = photo(301, 222), page(320, 240)
    large = photo(900, 676)
    alpha = np.dstack((text, np.linspace(0, 255, 320).astype(np.uint8)[None, :].repeat(240, axis=0)))
    inks = Image.fromarray(small).convert("CMYK")
    palette = Image.fromarray(text).quantize(12)
    files = {
        "photo.jpg": bytes(simplejpeg.encode_jpeg(small, quality=85, colorsubsampling="420")),
        "photo-large.jpg": bytes(simplejpeg.encode_jpeg(large, quality=80, colorsubsampling="420")),
        "photo-progressive.jpg": jpeg(small, progressive=True, quality=85),
        "page-grey.jpg": jpeg(text, mode="L", quality=90),
        "page.png": png(text),
        "page-grey.png": png(np.ascontiguousarray(text[:, :, 1])),
        "page-alpha.png": png(alpha),
        "page-16-bit.png": png(text.astype(np.uint16) * 256 + 77),
        "photo.webp": webp(small),
        "page-lossless.webp": webp(text, lossless=True),
        "photo.avif": bytes(imagecodecs.avif_encode(small, level=70, speed=8)),
        "photo.heic": heic(small),
        "photo.jp2": bytes(imagecodecs.jpeg2k_encode(small[:120, :160].copy(), codecformat="jp2")),
        "page.bmp": saved(text[:60, :120].copy(), "RGB", "BMP"),
        "page.tiff": saved(text[:60, :120].copy(), "RGB", "TIFF"),
        "page.gif": saved(text[:120, :200].copy(), "P", "GIF"),
    }
    for name, data in files.items():
        (FOLDER / name).write_bytes(data)
    inks.save(FOLDER / "photo-inks.jpg", quality=85)
    palette.save(FOLDER / "page-palette.png", optimize=True)


if __name__ == "__main__":
    main()
