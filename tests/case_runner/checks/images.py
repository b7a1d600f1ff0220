"""``backend.images[]`` and ``size_constraint``: what one picture in the backend's body must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.case_runner import pictures
from tests.case_runner.checks.table import Problems, Table
from tests.case_runner.pictures import CANONICAL_DATA_URL, BadPicture, Picture
from tests.case_runner.pointer import MISSING, look_up

_MEDIA_TYPES = {
    "PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif", "BMP": "image/bmp",
    "TIFF": "image/tiff", "AVIF": "image/avif", "HEIC": "image/heic",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """One picture as it reached the backend, and what the client had sent in its place."""

    text: str
    picture: Picture
    body: Any
    sent: Picture | None


def _size(seen: Seen, wanted: list[int], _: Mapping[str, Any]) -> Problems:
    found = [seen.picture.width, seen.picture.height]
    if found != wanted:
        yield f"{found}, not {wanted}"


def _pixels(seen: Seen, wanted: list[dict[str, Any]], _: Mapping[str, Any]) -> Problems:
    for place in wanted:
        problem = pictures.pixel_problem(seen.picture, place)
        if problem is not None:
            yield problem


def _size_constraint(seen: Seen, wanted: dict[str, Any], _: Mapping[str, Any]) -> Problems:
    yield from _CONSTRAINTS.judge(seen.picture, wanted)


def _mode(seen: Seen, wanted: str, _: Mapping[str, Any]) -> Problems:
    picture = seen.picture
    if wanted != "RGB":
        yield f"{wanted!r} is no mode that the runner knows"
    elif not picture.is_rgb:
        yield f"{picture.bands} bands, eight bits {picture.is_eight_bit}, CMYK {picture.is_cmyk}"


def _format_in(seen: Seen, wanted: list[str], _: Mapping[str, Any]) -> Problems:
    if seen.picture.format not in wanted:
        yield f"{seen.picture.format}, not one of {wanted}"


def _frames(seen: Seen, wanted: int, _: Mapping[str, Any]) -> Problems:
    if seen.picture.frames != wanted:
        yield f"{seen.picture.frames} frames, not {wanted}"


def _media_type(seen: Seen, wanted: bool, expect: Mapping[str, Any]) -> Problems:
    at = expect.get("media_type_pointer")
    declared = seen.picture.media_type if at is None else look_up(seen.body, at)
    if wanted and declared != _MEDIA_TYPES.get(seen.picture.format):
        yield f"{declared} on {seen.picture.format} bytes"


def _canonical(seen: Seen, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if wanted and CANONICAL_DATA_URL.match(seen.text) is None:
        yield f"{seen.text[:60]!r} is not canonical"


def _bytes_unchanged(seen: Seen, wanted: bool | str, expect: Mapping[str, Any]) -> Problems:
    if seen.sent is None:
        yield "the client sent no picture there"
    elif seen.sent.data == seen.picture.data:
        return
    elif wanted != "preferred":
        yield "other bytes than the client's"
    else:
        allowed = expect.get("max_mean_abs_error", 0.0)
        error = pictures.mean_abs_error(seen.sent, seen.picture)
        if error > allowed:
            yield f"mean error {error:.2f} above {allowed}"


def _max_error(seen: Seen, wanted: float, expect: Mapping[str, Any]) -> Problems:
    if expect.get("bytes_unchanged") is None:
        yield from _bytes_unchanged(seen, "preferred", {"max_mean_abs_error": wanted})


def _no_orientation_tag(seen: Seen, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if wanted and seen.picture.orientation > 1:
        yield f"orientation {seen.picture.orientation}"


IMAGES: Table[Seen] = Table(
    "",
    {
        "size": _size,
        "pixels": _pixels,
        "size_constraint": _size_constraint,
        "mode": _mode,
        "format_in": _format_in,
        "frames": _frames,
        "media_type_matches_bytes": _media_type,
        "canonical_data_url": _canonical,
        "bytes_unchanged": _bytes_unchanged,
        "max_mean_abs_error": _max_error,
        "no_orientation_tag": _no_orientation_tag,
    },
    {
        "pointer": "where to look",
        "pointer_any_of": "where to look",
        "encoding": "how to read what is there",
        "media_type_pointer": "read by media_type_matches_bytes",
        "checked_on": "says what is always done: the stored raster is read",
    },
)


def _at_most(value: float, limit: float, what: str) -> Problems:
    if value > limit:
        yield f"{what} {value:g} above {limit:g}"


def _at_least(value: float, limit: float, what: str) -> Problems:
    if value < limit:
        yield f"{what} {value:g} below {limit:g}"


def _aspect(picture: Picture, wanted: float, expect: Mapping[str, Any]) -> Problems:
    found = picture.width / picture.height
    if abs(found / wanted - 1) > expect.get("aspect_tol", 0.0) + 1e-9:
        yield f"{found:.4f}, not {wanted} +-{expect.get('aspect_tol', 0.0):.0%}"


_CONSTRAINTS: Table[Picture] = Table(
    "",
    {
        "max_pixels": lambda p, limit, _: _at_most(p.width * p.height, limit, "pixels"),
        "min_pixels": lambda p, limit, _: _at_least(p.width * p.height, limit, "pixels"),
        "max_side": lambda p, limit, _: _at_most(max(p.width, p.height), limit, "side"),
        "min_side": lambda p, limit, _: _at_least(min(p.width, p.height), limit, "side"),
        "aspect": _aspect,
        "max_ratio": lambda p, limit, _: _at_most(max(p.width, p.height) / min(p.width, p.height), limit, "ratio"),
    },
    {"aspect_tol": "read by aspect"},
)


def judge_image(body: Any, sent: Any, expect: Mapping[str, Any]) -> Problems:
    """Everything that is wrong with one entry of ``images``; it must decode whatever else is asked."""
    candidates = expect.get("pointer_any_of") or [expect.get("pointer", "")]
    at = next((each for each in candidates if isinstance(look_up(body, each), str)), None)
    if at is None:
        yield f"nothing at {' or '.join(candidates)}"
        return
    encoding = expect.get("encoding", "data-url")
    text = look_up(body, at)
    try:
        media_type, data = pictures.picture_bytes(text, encoding=encoding)
        picture = pictures.decode(data, media_type)
    except BadPicture as error:
        yield f"{at} does not decode: {error}"
        return
    for problem in IMAGES.judge(Seen(text, picture, body, _sent_picture(sent, at, encoding)), expect):
        yield f"{at} {problem}"


def _sent_picture(sent: Any, at: str, encoding: str) -> Picture | None:
    text = look_up(sent, at) if sent is not MISSING else MISSING
    if not isinstance(text, str):
        return None
    try:
        return pictures.decode(pictures.picture_bytes(text, encoding=encoding)[1])
    except BadPicture:
        return None
