"""Pages and screens with known text, drawn with real typefaces: what is measured when text is read back.

PDFium draws them, with the faces that are compiled into it (metric twins of Helvetica, Times and Courier), so that no
machine needs fonts and every machine gets the same letters. Deterministic.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gateway.media.codecs.decoders.pdf import render_page
from gateway.types import Size

Pixels = NDArray[np.uint8]
SANS, SERIF, MONO = "Helvetica", "Times-Roman", "Courier"
_FACES = (SANS, SERIF, MONO)
# Advance of an average letter in ems: where a line of so many letters ends.
_WIDTH_EM = {SANS: 0.5, SERIF: 0.44, MONO: 0.6}

SENTENCES = """\
The delivery of 14 March arrived two days late, and three of the twelve boxes had been opened.
Please confirm the total of 1,284.50 before Thursday noon, otherwise the order will be cancelled.
Our warehouse at the north gate is closed on Sundays; call 555-0148 to arrange another time.
Each pallet weighs 348 kg and must be lifted from the short side by a truck of class B or larger.
The invoice number is 48-2210, the reference 9K-7731, and payment is due within 30 days.
Rain is expected from the west with winds of 40 to 55 km/h, turning to snow above 900 metres.
Mix 250 g of flour with 2 eggs and a pinch of salt, then let the dough rest for half an hour.
Temperatures in the server room rose from 21.5 to 27.8 degrees between 6:15 and 9:40.
She asked whether the meeting could be moved to Room 306, since the projector there works.
Version 2.4.1 fixes a rare crash when a file of more than 65,536 rows is opened twice.
The train leaves platform 7 at 18:52 and reaches the coast shortly after half past nine.
Tenants must keep the staircase free; bicycles left there are removed without further notice.
Of 1,920 people who were asked, 63 per cent would vote again and 11 per cent did not answer.
Turn the valve clockwise until the arrow points to zero, wait ten seconds, and press the button.
Quarterly revenue grew by 8.6 per cent to 72.3 million, while costs stayed flat at 41.9 million.
The museum opens daily except Monday from 10:00 to 17:30; children under six enter free.""".splitlines()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text; ``x`` and the baseline ``y`` in points from the upper left corner."""

    x: float
    y: float
    text: str
    points: float
    face: str = SANS


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle behind the text, in points from the upper left corner; colour in 0 to 1."""

    x: float
    y: float
    width: float
    height: float
    colour: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is drawn: its size in points, the pixels of one point, lines in reading order."""

    width: float
    height: float
    scale: float
    lines: Sequence[Line]
    boxes: Sequence[Box] = ()

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def draw(self) -> Pixels:
        """RGB."""
        size = Size(round(self.width * self.scale), round(self.height * self.scale))
        drawn = render_page(_pdf(self), size, 0).samples
        return np.ascontiguousarray(drawn[:, :, :3])


@dataclass(frozen=True, slots=True)
class Writing:
    """A file with text in it."""

    kind: str
    file: bytes
    pixels: Pixels
    text: str


def _pdf(sheet: Sheet) -> bytes:
    drawing = []
    for box in sheet.boxes:
        colour = " ".join(f"{part:.3f}" for part in box.colour)
        place = f"{box.x:.2f} {sheet.height - box.y - box.height:.2f} {box.width:.2f} {box.height:.2f}"
        drawing.append(f"{colour} rg {place} re f")
    drawing.append("0.10 0.11 0.14 rg")
    for line in sheet.lines:
        shown = line.text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        face = f"/F{_FACES.index(line.face)} {line.points:.2f} Tf"
        drawing.append(f"BT {face} {line.x:.2f} {sheet.height - line.y:.2f} Td ({shown}) Tj ET")
    content = "\n".join(drawing).encode("latin-1")
    faces = "".join(f"/F{at}<</Type/Font/Subtype/Type1/BaseFont/{face}>>" for at, face in enumerate(_FACES))
    page = f"<</Type/Page/Parent 2 0 R/Resources<</Font<<{faces}>>>>/MediaBox[0 0 {sheet.width} {sheet.height}]"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"{page}/Contents 4 0 R>>".encode(),
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
    ]
    out, starts = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    end = b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 5\n0000000000 65535 f \n" + table + end


def wrapped(letters: int, count: int, start: int = 0) -> list[str]:
    """``count`` lines of at most so many letters, of the sentences from one of them on."""
    words = [word for turn in range(4) for sentence in _from(start + 3 * turn) for word in sentence.split()]
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > letters:
            lines.append(line)
            line = word
            if len(lines) == count:
                break
        else:
            line = f"{line} {word}".strip()
    return lines


def _from(start: int) -> list[str]:
    start %= len(SENTENCES)
    return [*SENTENCES[start:], *SENTENCES[:start]]


def column(at: tuple[float, float], width: float, count: int, points: float, face: str, start: int = 0) -> list[Line]:
    """A column of text ``width`` points wide, its first baseline at ``at``."""
    texts = wrapped(int(width / (points * _WIDTH_EM[face])), count, start)
    return [Line(at[0], at[1] + 1.35 * points * row, text, points, face) for row, text in enumerate(texts)]


def scan() -> Sheet:
    """An A4 page at 300 dpi in 11-point Times."""
    return Sheet(595, 842, 300 / 72, column((60, 90), 470, 26, 11, SERIF))


def small_print() -> Sheet:
    """An A4 page at 300 dpi in 7-point Helvetica: terms of business."""
    return Sheet(595, 842, 300 / 72, column((60, 90), 470, 22, 7, SANS, 5))


def phone() -> Sheet:
    """A phone's chat at three pixels a point: 17 and 13 points, as phones have it."""
    lines, boxes, top = [], [Box(0, 0, 390, 844, (0.97, 0.97, 0.98))], 70.0
    for bubble in range(6):
        points = 13 if bubble % 3 == 2 else 17
        texts = wrapped(34 if points == 17 else 44, 4, 2 * bubble)
        boxes.append(Box(16, top - 1.5 * points, 350, 1.35 * points * len(texts) + points, (1.0, 1.0, 1.0)))
        lines += [Line(28, top + 1.35 * points * row, text, points) for row, text in enumerate(texts)]
        top += 1.35 * points * len(texts) + 2.4 * points
    return Sheet(390, 844, 3, lines, boxes)


def desktop() -> Sheet:
    """A full-HD screen at one pixel a point: a window of text in 14 points, code in 13."""
    boxes = [Box(0, 0, 1920, 1080, (0.95, 0.95, 0.96)), Box(60, 60, 1000, 960, (1.0, 1.0, 1.0))]
    lines = column((100, 120), 880, 16, 14, SANS)
    lines += [Line(100, 480 + 18.0 * row, text, 13, MONO) for row, text in enumerate(wrapped(90, 14, 6))]
    return Sheet(1920, 1080, 1, lines, boxes)


def as_jpeg(pixels: Pixels) -> bytes:
    """Quality 90."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def as_png(pixels: Pixels) -> bytes:
    """Lossless."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def as_scan(pixels: Pixels) -> Pixels:
    """Grey paper with its noise."""
    grey = np.asarray(Image.fromarray(pixels).convert("L")).astype(np.float32)
    noise = np.random.default_rng(5).normal(0, 3.5, grey.shape)
    return np.clip(grey - 6 + noise, 0, 255).astype(np.uint8)


_KINDS: dict[str, tuple[Callable[[], Sheet], bool]] = {
    "scan, 11 pt": (scan, True),
    "scan, 7 pt": (small_print, True),
    "phone screenshot": (phone, False),
    "desktop screenshot": (desktop, False),
}


def writings() -> list[Writing]:
    """Scans as grey JPEG, screens as PNG."""
    found = []
    for kind, (sheet, scanned) in _KINDS.items():
        drawn = sheet()
        pixels = as_scan(drawn.draw()) if scanned else drawn.draw()
        found.append(Writing(kind, as_jpeg(pixels) if scanned else as_png(pixels), pixels, drawn.text))
    return found
