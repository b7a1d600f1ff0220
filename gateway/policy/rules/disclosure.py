"""Where a response tells what was done to its images: always in headers, and in its body for those who read that."""

from __future__ import annotations

from gateway.policy.effective import Disclosure
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="disclosure",
    summary="`body`: the response's JSON (of a stream, its first event) gets a member `vlmgw` with all images' sizes, "
    "scale and tokens; `usage`: its usage gets it, with the sums; the header `x-vlmgw-disclosure` asks for either.",
    kind=Choice(Disclosure),
    default=Disclosure.HEADERS,
)
