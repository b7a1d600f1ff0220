"""Whether an embedded colour profile other than sRGB is applied.

The default is what engines do: they load with Pillow, which ignores profiles. A gateway that converted by default
would show the model other pixels than the engine alone, and could pass no photograph with a profile as it came.
"""

from __future__ import annotations

from gateway.policy.effective import ColourProfile
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="colour_profile",
    summary="Embedded colour profiles: `ignore` them as engines do, or convert to `srgb`.",
    kind=Choice(ColourProfile),
    default=ColourProfile.IGNORE,
)
