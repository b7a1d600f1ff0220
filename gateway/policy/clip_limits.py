"""What the limits on videos and on sounds share: how many there may be, how large one file, how long one may last.

Decided here: the wording and what counts. Not decided here: keys, bounds and defaults, which stand in the rules' own
files. A check of one kind never looks at clips of the other.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import MediumTooLarge, MediumTooLong, TooManyMedia
from gateway.policy.effective import RuleValues
from gateway.policy.rule import DeclaredCheck, Measured, MeasuredCheck, is_spelled_longer
from gateway.types import Call, MediumKind

_WORDS = {MediumKind.VIDEO: "video", MediumKind.AUDIO: "sound"}


def within_count(kind: MediumKind, key: str, limit_of: Callable[[RuleValues], int | None]) -> DeclaredCheck:
    """Over all roles and turns, repetitions included; the first above the limit is named."""

    def check(values: RuleValues, call: Call) -> TooManyMedia | None:
        limit = limit_of(values)
        found = [medium.name for medium in call.other_media if medium.kind is kind]
        if limit is None or len(found) <= limit:
            return None
        message = f"The request has {len(found)} {_WORDS[kind]}s, the limit is {limit}."
        return TooManyMedia(message, part=found[limit], rule=key)

    return check


def spelled_within(kind: MediumKind, key: str, limit_of: Callable[[RuleValues], int]) -> DeclaredCheck:
    """A source whose text is far too long for a file of that size, refused before it is read."""

    def check(values: RuleValues, call: Call) -> MediumTooLarge | None:
        limit = limit_of(values)
        for medium in call.other_media:
            if medium.kind is kind and is_spelled_longer(medium.source, limit):
                message = f"The {_WORDS[kind]} is spelled in more characters than one of at most {limit} bytes has."
                return MediumTooLarge(message, part=medium.name, rule=key)
        return None

    return check


def within_bytes(kind: MediumKind, key: str, limit_of: Callable[[RuleValues], int]) -> MeasuredCheck:
    """The exact count, once a file was read."""

    def check(values: RuleValues, measured: Measured) -> MediumTooLarge | None:
        limit = limit_of(values)
        for clip in measured.clips:
            if clip.kind is kind and clip.byte_count > limit:
                message = f"The {_WORDS[kind]} has {clip.byte_count} bytes, the limit is {limit}."
                return MediumTooLarge(message, part=clip.name, rule=key)
        return None

    return check


def within_seconds(kind: MediumKind, key: str, limit_of: Callable[[RuleValues], int | None]) -> MeasuredCheck:
    """By the header. Once there is a limit, a clip whose header does not tell is refused."""

    def check(values: RuleValues, measured: Measured) -> MediumTooLong | None:
        limit = limit_of(values)
        for clip in measured.clips:
            if limit is None or clip.kind is not kind:
                continue
            if clip.duration_s is None or clip.duration_s > limit:
                told = clip.duration_s
                lasts = "does not say how long it lasts" if told is None else f"lasts {told:.3f} s"
                return MediumTooLong(f"The {_WORDS[kind]} {lasts}, the limit is {limit} s.", part=clip.name, rule=key)
        return None

    return check
