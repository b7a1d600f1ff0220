"""Examples for what one picture must be."""

from __future__ import annotations

import base64
from typing import Any

import pyvips

from tests.case_runner import pictures
from tests.case_runner.checks.images import Seen
from tests.case_runner.example import Example
from tests.case_runner.pictures import Picture
from tests.case_runner.specimens import RED, data_url


def picture(text: str) -> Picture:
    """A data URL decoded."""
    media_type, data = pictures.picture_bytes(text)
    return pictures.decode(data, media_type)


def _seen(text: str, body: Any = None, sent: str | None = None) -> Seen:
    return Seen(text, picture(text), body, None if sent is None else picture(sent))


def _oriented(orientation: int) -> Seen:
    image = pyvips.Image.black(32, 16, bands=3).copy(interpretation="srgb")
    image.set_type(pyvips.GValue.gint_type, "orientation", orientation)
    text = "data:image/jpeg;base64," + base64.b64encode(image.jpegsave_buffer()).decode()
    return _seen(text)


def picture_file(suffix: str, **options: Any) -> Seen:
    """A black picture in a format, with options of its writer."""
    bands = options.pop("bands", 3)
    image = pyvips.Image.black(32, 32, bands=bands).copy(interpretation="srgb")
    data = image.write_to_buffer(suffix, **options)
    return _seen(f"data:image/{suffix[1:]};base64," + base64.b64encode(data).decode())


TWO_FRAMES = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAP8AAAAAACH5BAAKAAAALAAAAAABAAEAAAICRAEAIfkEAAoAAAAsAAAAAAEAAQAAAgJEAQA7"
)
SQUARE, WIDE = _seen(data_url()), _seen(data_url(224, 112))
IMAGE_EXAMPLES = {
    "size": Example([112, 112], SQUARE, WIDE),
    "pixels": Example([{"rel": [0.5, 0.5], "rgb": list(RED), "tol": 4}], SQUARE, _seen(data_url(rgb=(0, 0, 200)))),
    "size_constraint": Example({"max_pixels": 20000}, SQUARE, WIDE),
    "mode": Example("RGB", SQUARE, picture_file(".png", bands=4)),
    "format_in": Example(["PNG"], SQUARE, picture_file(".webp")),
    "frames": Example(1, SQUARE, _seen(TWO_FRAMES)),
    "media_type_matches_bytes": Example(True, SQUARE, _seen(data_url().replace("image/png", "image/jpeg"))),
    "canonical_data_url": Example(True, SQUARE, _seen(data_url().replace("data:", "DATA:"))),
    "bytes_unchanged": Example(
        True, _seen(data_url(), None, data_url()), _seen(data_url(), None, data_url(rgb=(9, 9, 9)))
    ),
    "max_mean_abs_error": Example(
        0.5, _seen(data_url(), None, data_url(rgb=(220, 30, 31))), _seen(data_url(), None, data_url(rgb=(9, 9, 9)))
    ),
    "no_orientation_tag": Example(True, _oriented(1), _oriented(6)),
}  # fmt: skip
CONSTRAINT_EXAMPLES = {
    "max_pixels": Example(20000, SQUARE.picture, WIDE.picture),
    "min_pixels": Example(20000, WIDE.picture, SQUARE.picture),
    "max_side": Example(200, SQUARE.picture, WIDE.picture),
    "min_side": Example(112, SQUARE.picture, picture(data_url(300, 100))),
    "aspect": Example(2.0, WIDE.picture, SQUARE.picture, {"aspect_tol": 0.03}),
    "max_ratio": Example(1.5, SQUARE.picture, WIDE.picture),
}
