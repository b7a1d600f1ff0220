"""Coordinates in an answer, taken back to the picture that the client sent.

Decided here: how the models whose formats are documented write boxes and points, which numbers of a text are such
coordinates, and the arithmetic. Not decided here: who asked for it, and where in an answer text stands (`dialects`).

Sources: Qwen2-VL (arXiv:2409.12191 §2.2.1: boxes as ``(x1,y1),(x2,y2)``, normalised to [0, 1000)); Qwen2.5-VL's
grounding cookbook (``"bbox_2d": [x1, y1, x2, y2]``, ``"point_2d": [x, y]`` and ``<points x1=… y1=…>``, in pixels of the
image as the processor resized it); Qwen3-VL's (the same keys, 0 to 1000). All of them see the image upright and whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.types import Size

# A held-back beginning longer than this is no list of coordinates any more.
_MOST_HELD_CHARACTERS: Final = 4_096
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_KEYS: Final = ('"bbox_2d"', '"point_2d"')
# A list, or a list of lists, of numbers.
_LIST: Final = r"\[(?:[\d\s.,-]|\[[\d\s.,-]*\])*\]"
_KEYED: Final = re.compile(rf'(?:"bbox_2d"|"point_2d")\s*:\s*({_LIST})')
_OPEN_KEYED: Final = re.compile(r"\s*(?::\s*(?:\[[\d\s.,\[\]-]*)?)?")
_TAG: Final = re.compile(r"<points?\s[^<>]*>")
_OPEN_TAG: Final = re.compile(r"<points?(?:\s[^<>]*)?")
_ATTRIBUTE: Final = re.compile(r'(\s[xy]\d*=")(-?\d+(?:\.\d+)?)(?=")')
_PAIRS: Final = re.compile(r"\(\d{1,4},\d{1,4}\)(?:,\(\d{1,4},\d{1,4}\))+")
_OPEN_PAIRS: Final = re.compile(r"(?:\(\d{1,4},\d{1,4}\),?)*(?:\(\d{0,4}(?:,\d{0,4})?)?")


class CoordinateForm(StrEnum):
    """What a checkpoint's coordinates are counted in, and how they are written. ``NONE``: not documented."""

    NONE = ""
    ABSOLUTE = "absolute"
    THOUSANDTHS = "thousandths"
    THOUSANDTHS_IN_PAIRS = "thousandths_in_pairs"


@dataclass(frozen=True, slots=True)
class Frame:
    """The picture as the model counts in it, and as the client sent it (upright)."""

    form: CoordinateForm
    space: Size
    original: Size

    @classmethod
    def of(cls, form: CoordinateForm, seen: Size, original: Size) -> Frame:
        """``seen`` is the raster that the model's processor makes of what it was sent."""
        return cls(form, seen if form is CoordinateForm.ABSOLUTE else Size(1_000, 1_000), original)

    def across(self, value: float) -> int:
        """A horizontal coordinate in pixels of the original, within it."""
        return _scaled(value, self.space.width, self.original.width)

    def down(self, value: float) -> int:
        """A vertical one."""
        return _scaled(value, self.space.height, self.original.height)


def _scaled(value: float, given: int, wanted: int) -> int:
    return min(max(int(value * wanted / given + 0.5), 0), wanted)


class CoordinateText:
    """One text of an answer, as it arrives: what may be the beginning of coordinates waits for its end."""

    __slots__ = ("_frame", "_held")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._held = ""

    @property
    def holds(self) -> bool:
        """Whether something waits."""
        return bool(self._held)

    def feed(self, text: str) -> str:
        """The next piece of text; returns what can be told of it and what waited."""
        whole = self._held + text
        done = _settled_length(whole, self._frame.form)
        self._held = whole[done:]
        return mapped(whole[:done], self._frame)

    def finish(self) -> str:
        """The text ends here: what still waits."""
        rest, self._held = self._held, ""
        return mapped(rest, self._frame)


def mapped(text: str, frame: Frame) -> str:
    """A whole text with its coordinates taken back to the original picture; every other character stays."""
    if frame.form is CoordinateForm.NONE:
        return text
    if frame.form is CoordinateForm.THOUSANDTHS_IN_PAIRS:
        return _PAIRS.sub(lambda found: _alternating(found[0], frame), text)
    text = _KEYED.sub(lambda found: _keyed(found, frame), text)
    return _TAG.sub(lambda found: _attributes(found[0], frame), text)


def _keyed(found: re.Match[str], frame: Frame) -> str:
    """A key and its list. A list of an odd count of numbers is no list of points, and stays."""
    key_length = found.start(1) - found.start(0)
    return found[0][:key_length] + _alternating(found[1], frame)


def _alternating(text: str, frame: Frame) -> str:
    """Numbers in turn across and down."""
    if len(_NUMBER.findall(text)) % 2:
        return text
    turns: list[Callable[[float], int]] = [frame.across, frame.down]

    def turn(found: re.Match[str]) -> str:
        turns.reverse()
        return str(turns[1](float(found[0])))

    return _NUMBER.sub(turn, text)


def _attributes(tag: str, frame: Frame) -> str:
    def one(found: re.Match[str]) -> str:
        scale = frame.across if found[1].lstrip().startswith("x") else frame.down
        return found[1] + str(scale(float(found[2])))

    return _ATTRIBUTE.sub(one, tag)


def _settled_length(text: str, form: CoordinateForm) -> int:
    """How much of a text is certain: all before the first place where coordinates may have begun and not ended."""
    if form is CoordinateForm.NONE:
        return len(text)
    in_pairs = form is CoordinateForm.THOUSANDTHS_IN_PAIRS
    complete = _PAIRS if in_pairs else _KEYED
    earliest = max(0, len(text) - _MOST_HELD_CHARACTERS)
    for begin in re.finditer(r"\(" if in_pairs else r'["<]', text[earliest:]):
        at = earliest + begin.start()
        rest = text[at:]
        whole = complete.match(rest)
        if whole is not None and (not in_pairs or whole.end() < len(rest)):
            continue
        if _OPEN_PAIRS.fullmatch(rest) if in_pairs else _may_go_on(rest):
            return at
    return len(text)


def _may_go_on(rest: str) -> bool:
    if rest[0] == "<":
        return "<points".startswith(rest) or _OPEN_TAG.fullmatch(rest) is not None
    for key in _KEYS:
        if key.startswith(rest):
            return True
        if rest.startswith(key):
            return _OPEN_KEYED.fullmatch(rest, len(key)) is not None
    return False
