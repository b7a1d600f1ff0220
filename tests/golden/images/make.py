"""Makes the inputs and references of this folder, with the Pillow wheel (13.0.0) and numpy and nothing of the gateway.

The references are what an engine's own processor would see: the file opened by Pillow, turned upright by its EXIF tag,
flattened on white, resized by BICUBIC, horizontally first. Run it in an environment of its own:
``python -m venv v && v/bin/pip install pillow==13.0.0 numpy && v/bin/python tests/golden/images/make.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps

FOLDER = Path(__file__).parent


def scene(width: int, height: int) -> Image.Image:
    """Soft clouds of colour, like a photograph's background, with sharp lines and a wheel of spokes on top."""
    rng = np.random.default_rng(20)
    total = np.zeros((height, width, 3))
    for cells in (3, 9, 27, 81):
        layer = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        total += (np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC)) - 128.0) * (2.4 / cells**0.6)
    picture = Image.fromarray(np.clip(total + 128, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    for spoke in range(36):
        angle = spoke * np.pi / 18
        end = (width / 2 + np.cos(angle) * width * 0.3, height / 2 + np.sin(angle) * height * 0.3)
        draw.line((width / 2, height / 2, *end), fill=(20, 20, 30) if spoke % 2 else (245, 240, 220), width=2)
    return picture


def screen(width: int, height: int) -> Image.Image:
    """Flat areas, hairlines, text, and a corner that fades into transparency."""
    picture = Image.new("RGBA", (width, height), (246, 247, 249, 255))
    draw = ImageDraw.Draw(picture)
    for row in range(12):
        top = 12 + row * height // 13
        draw.rectangle((10, top, width * (row % 4 + 4) // 8, top + height // 18), fill=(24, 119, 242, 255))
        draw.text((16, top + 4), f"row {row}: 1,280 tokens", fill=(255, 255, 255, 255))
        draw.line((0, top - 4, width, top - 4), fill=(200, 204, 210, 255))
    pixels = np.asarray(picture).copy()
    pixels[: height // 4, width * 3 // 4 :, 3] = np.linspace(255, 0, width - width * 3 // 4).astype(np.uint8)
    return Image.fromarray(pixels)


def reference(path: Path, width: int, height: int) -> Image.Image:
    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened)
    ground = Image.new("RGB", upright.size, (255, 255, 255))
    ground.paste(upright, mask=upright if upright.mode == "RGBA" else None)
    middle = ground.resize((width, ground.height), Image.Resampling.BICUBIC)
    return middle.resize((width, height), Image.Resampling.BICUBIC)


def main() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    scene(600, 448).save(FOLDER / "scene.jpg", quality=90, subsampling="4:2:0", exif=exif)
    screen(300, 520).save(FOLDER / "screen.png", optimize=True)
    reference(FOLDER / "scene.jpg", 224, 288).save(FOLDER / "scene.expected.png", optimize=True)
    reference(FOLDER / "screen.png", 160, 288).save(FOLDER / "screen.expected.png", optimize=True)


if __name__ == "__main__":
    main()
