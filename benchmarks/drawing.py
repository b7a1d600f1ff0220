"""Screens, pages and graphics that we draw ourselves, and photograph-like noise for machines without any photograph.

Deterministic: the same size and seed give the same pixels. Text uses PIL's built-in bitmap font, enlarged, since a bare
machine has no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_TEXT = """invoice total shipping address quantity the meeting moved to Thursday please confirm before noon latency p99
tokens per second 1,280 queue depth error budget 99.95 % see attached photo of the receipt from last week and compare
it with the order number 48-2210 returned 3 of 12 items warehouse north gate B"""
_WORDS = _TEXT.split()
_INK, _PAPER = (32, 34, 40), (250, 250, 252)


def _text_mask(text: str, pixel_height: int) -> Image.Image:
    """White text on black in mode L, its glyphs ``pixel_height`` tall."""
    font = ImageFont.load_default_imagefont()
    left, top, right, bottom = font.getbbox(text)
    mask = Image.new("L", (max(1, int(right - left)), max(1, int(bottom - top))), 0)
    ImageDraw.Draw(mask).text((0, 0), text, fill=255, font=font)
    scale = pixel_height / mask.height
    return mask.resize((max(1, round(mask.width * scale)), pixel_height), Image.Resampling.BICUBIC)


def _write(page: Image.Image, at: tuple[int, int], text: str, height: int, ink: tuple[int, int, int] = _INK) -> None:
    mask = _text_mask(text, height)
    page.paste(ink, (at[0], at[1], at[0] + mask.width, at[1] + mask.height), mask)


def _lines(seed: int, letters: int) -> Iterator[str]:
    """Endless lines of words of about ``letters`` letters."""
    words = cycle(_WORDS[seed % len(_WORDS) :] + _WORDS[: seed % len(_WORDS)])
    while True:
        line = next(words)
        while len(line) < letters:
            line = f"{line} {next(words)}"
        yield line


def draw_chat(width: int, height: int, avatar: Image.Image | None = None) -> Image.Image:
    """A phone's chat screen: status bar, bubbles of text left and right, perhaps with a small photograph in one."""
    page = Image.new("RGB", (width, height), (240, 242, 245))
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, width, height // 14), fill=(24, 119, 242))
    _write(page, (width // 20, height // 32), "9:41   Team kitchen", height // 70, (255, 255, 255))
    top, seed, lines = height // 12, 0, _lines(7, 34)
    while top < height - height // 8:
        mine = seed % 2 == 1
        count = 2 + seed * 5 % 4
        tall = count * height // 55 + height // 60
        left = width // 5 if mine else width // 24
        box = (left, top, left + width * 3 // 4, top + tall)
        draw.rounded_rectangle(box, radius=width // 30, fill=(0, 132, 255) if mine else (255, 255, 255))
        for row in range(count):
            at = (left + width // 30, top + height // 120 + row * height // 55)
            _write(page, at, next(lines), height // 90, (255, 255, 255) if mine else _INK)
        top += tall + height // 80
        seed += 1
        if seed == 3 and avatar is not None:
            inset = avatar.resize((width * 3 // 5, width * 2 // 5), Image.Resampling.BICUBIC)
            page.paste(inset, (width // 24, top))
            top += inset.height + height // 80
    return page


def draw_dashboard(width: int, height: int) -> Image.Image:
    """A wide screen: a grid of charts with axes and labels, and a column of code."""
    page = Image.new("RGB", (width, height), (17, 18, 23))
    draw = ImageDraw.Draw(page)
    rng = np.random.default_rng(11)
    columns, rows = 4, 3
    wide, tall = width * 3 // 4 // columns, height // rows
    for panel in range(columns * rows):
        left, top = panel % columns * wide + 12, panel // columns * tall + 12
        draw.rectangle((left, top, left + wide - 24, top + tall - 24), fill=(31, 32, 38), outline=(60, 62, 70))
        _write(page, (left + 16, top + 14), next(_lines(panel, 24)), 22, (204, 204, 220))
        for series in range(3):
            steps = np.cumsum(rng.normal(0, 9, 120)) + tall * (0.35 + 0.15 * series)
            points = [
                (left + 24 + index * (wide - 60) / 119, top + min(max(float(value), 60), tall - 50))
                for index, value in enumerate(steps)
            ]
            draw.line(points, fill=((115, 191, 105), (242, 204, 12), (87, 148, 242))[series], width=3)
    lines = _lines(3, 46)
    for row in range(height // 30):
        _write(page, (width * 3 // 4 + 20, 14 + row * 30), f"{row + 1:4d}  {next(lines)}", 20, (206, 145, 120))
    return page


def draw_page(width: int, height: int) -> Image.Image:
    """A scanned page of text in mode L: grey paper with noise, a heading, ruled table lines."""
    page = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(page)
    _write(page, (width // 10, height // 16), "Delivery note 48-2210", height // 50)
    lines = _lines(5, 78)
    for row in range(64):
        top = height // 8 + row * height // 80
        _write(page, (width // 10, top), next(lines)[:92], height // 140)
        if row % 16 == 15:
            draw.line((width // 10, top + height // 100, width * 9 // 10, top + height // 100), fill=_INK, width=3)
    grey = np.asarray(page.convert("L")).astype(np.float32)
    noise = np.random.default_rng(5).normal(0, 3.5, grey.shape)
    return Image.fromarray(np.clip(grey - 6 + noise, 0, 255).astype(np.uint8))


def draw_logo(side: int) -> Image.Image:
    """A badge with soft edges on full transparency, mode RGBA; the hidden pixels are black."""
    rows, columns = np.mgrid[0:side, 0:side].astype(np.float32)
    radius = np.hypot(rows - side / 2, columns - side / 2)
    alpha = np.clip((side * 0.42 - radius) / 6, 0, 1)
    shade = (columns / side)[:, :, None] * np.array([200, 60, -40]) + np.array([30, 90, 200])
    rgba = np.dstack((shade * (alpha > 0)[:, :, None], alpha * 255))
    badge = Image.fromarray(np.clip(rgba, 0, 255).astype(np.uint8))
    mask = _text_mask("VLM", side // 5)
    badge.paste((255, 255, 255, 255), ((side - mask.width) // 2, (side - mask.height) // 2), mask)
    return badge


def draw_chart(width: int, height: int) -> Image.Image:
    """A bar chart with few colours, mode P."""
    page = Image.new("RGB", (width, height), (255, 255, 255))
    draw = ImageDraw.Draw(page)
    colours = ((31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40))
    _write(page, (width // 30, height // 30), "Tokens per request by tenant", height // 28)
    values = np.random.default_rng(3).uniform(0.2, 0.95, 24)
    wide = width * 9 // 10 // len(values)
    for index, value in enumerate(values):
        left = width // 20 + index * wide
        draw.rectangle(
            (left, height - int(value * height * 0.8), left + wide * 3 // 4, height - height // 20), colours[index % 4]
        )
        _write(page, (left, height - height // 24), f"t{index}", height // 50)
    return page.quantize(16)


def draw_photo_like(width: int, height: int, seed: int) -> Image.Image:
    """Clouds of noise at every scale, tinted: compresses and resizes like a photograph, shows nothing."""
    rng = np.random.default_rng(seed)
    total = np.zeros((height, width, 3), np.float32)
    cells = 4
    while cells < width:
        shape = (max(2, cells * height // width), cells, 3)
        layer = Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8))
        total += (np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC)).astype(np.float32) - 128) * (
            3 / cells**0.7
        )
        cells *= 3
    return Image.fromarray(np.clip(total * 0.9 + np.array([124, 132, 110]), 0, 255).astype(np.uint8))
