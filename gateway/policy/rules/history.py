"""What a conversation that grows past a trigger loses: its oldest images, a batch at a time, never the newest.

The frontier before which images are left out stands at a multiple of ``batch``, so it holds still until that many more
images have come, and with it everything that an engine has cached of the conversation. Which images that are is decided
from the request alone (`policy.dropping`); what takes their places, in `omission`.
"""

from __future__ import annotations

from gateway.policy.histories import Histories
from gateway.policy.rule import Rule

RULE = Rule(
    key="history",
    summary="Leave out the oldest images in batches: `{trigger: {images: 20}, batch: 10, keep_newest: 4}`, or `none`.",
    kind=Histories(),
    default=None,
)
