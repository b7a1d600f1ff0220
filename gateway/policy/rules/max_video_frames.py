"""How many frames of one video reach the model.

``video: frames`` samples no more than that; a video that is passed as a file, of which the model's processor would take
more, is refused. In the frame form vLLM itself drops what is above ``num_frames`` of ``--media-io-kwargs`` (32 by
default): that bound is a setting of the model (``video_frames``), this one is the tenant's.
"""

from __future__ import annotations

from gateway.errors import MediumTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> MediumTooLarge | None:
    limit = values.max_video_frames
    for clip in measured.clips:
        if limit is not None and clip.frames is not None and clip.frames > limit:
            message = f"The model would take {clip.frames} frames of the video, the limit is {limit}."
            return MediumTooLarge(message, part=clip.name, rule="max_video_frames")
    return None


RULE = Rule(
    key="max_video_frames",
    summary="Frames of one video that reach the model; `video: frames` samples no more, `video: file` refuses.",
    kind=Amount("max_video_frames", 2, 768, word="none"),
    default=None,
    measured=_measured,
    of_clips=True,
)
