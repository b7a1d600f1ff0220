"""Text read back from pixels by Tesseract, and how much of it is wrong.

Tesseract (Apache-2.0, Debian package `tesseract-ocr`) is a program of its own, started once for every picture, with one
thread. What it reads is brought to one size first, because it is trained for letters of about thirty pixels and would
otherwise measure its own taste: what a picture lost when it was shrunk does not come back when it is enlarged.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gateway.types import Size

Pixels = NDArray[np.uint8]
_PROGRAM = "tesseract"
# One uniform block of text: no layout to be guessed, so that a cap cannot change the order of lines.
_COMMAND = (_PROGRAM, "stdin", "stdout", "--psm", "6", "-l", "eng")
_TIMEOUT_S = 180


class CannotRead(Exception):
    """Tesseract is not installed, or failed; the message says which."""


def version() -> str:
    """Such as `tesseract 5.3.0`. Raises CannotRead."""
    if shutil.which(_PROGRAM) is None:
        raise CannotRead("tesseract is not installed (Debian: apt-get install tesseract-ocr)")
    said = subprocess.run([_PROGRAM, "--version"], capture_output=True, text=True, check=True)
    return (said.stdout or said.stderr).splitlines()[0].strip()


def read_text(pixels: Pixels, at: Size) -> str:
    """What stands in the picture, once it is brought to the size ``at``. Raises CannotRead."""
    grey = Image.fromarray(pixels).convert("L")
    if grey.size != (at.width, at.height):
        grey = grey.resize((at.width, at.height), Image.Resampling.BICUBIC)
    picture = b"P5 %d %d 255\n" % grey.size + grey.tobytes()
    try:
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        done = subprocess.run(
            _COMMAND, input=picture, capture_output=True, timeout=_TIMEOUT_S, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotRead(f"tesseract: {error}") from error
    return done.stdout.decode()


def error_rate(read: str, written: str) -> float:
    """Letters to change, add or take away, as a share of those written; runs of blanks and lines count as one blank.

    Can exceed 1 where more is read than was written.
    """
    right, wrong = " ".join(written.split()), " ".join(read.split())
    return distance(right, wrong) / max(1, len(right))


def distance(one: str, other: str) -> int:
    """Levenshtein's distance, a column of the table at a time in the bits of whole numbers.

    H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", Nordic Journal of Computing
    10 (2003), after G. Myers, Journal of the ACM 46 (1999).
    """
    if not one:
        return len(other)
    every = (1 << len(one)) - 1
    last = 1 << (len(one) - 1)
    places: dict[str, int] = {}
    for at, letter in enumerate(one):
        places[letter] = places.get(letter, 0) | 1 << at
    up, down, found = every, 0, len(one)
    for letter in other:
        equal = places.get(letter, 0)
        diagonal = (((equal & up) + up) ^ up) | equal | down
        right = down | ~(diagonal | up) & every
        left = up & diagonal
        found += (right & last != 0) - (left & last != 0)
        right = (right << 1 | 1) & every
        up = (left << 1 | ~(diagonal | right)) & every
        down = right & diagonal
    return found
