"""How many bytes one video's file may have.

The exact count is known once it was read; a text that is far too long for it is refused before.
"""

from __future__ import annotations

from gateway.policy.clip_limits import spelled_within, within_bytes
from gateway.policy.rule import Rule
from gateway.policy.values import BYTE_UNITS, Amount
from gateway.types import MediumKind

_KEY = "max_video_bytes"

RULE = Rule(
    key=_KEY,
    summary="Bytes of one video's file (not of its base64).",
    kind=Amount(_KEY, 1, 2**30, BYTE_UNITS),
    default=48 * 2**20,
    declared=spelled_within(MediumKind.VIDEO, _KEY, lambda values: values.max_video_bytes),
    measured=within_bytes(MediumKind.VIDEO, _KEY, lambda values: values.max_video_bytes),
    of_clips=True,
)
