"""What a backend gets of a video.

``frames`` needs the extra ``video`` (PyAV), a model whose sampling rule is known, and a backend that is vLLM.
"""

from __future__ import annotations

from gateway.policy.effective import Video
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="video",
    summary="`file`: the file as it came. `frames`: JPEG frames by the model's own sampling rule (vLLM only).",
    kind=Choice(Video),
    default=Video.FILE,
)
