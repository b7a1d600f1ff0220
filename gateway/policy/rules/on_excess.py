"""What becomes of a request above a limit or cap, rule by rule; the comparisons live with those rules.

`shrink` makes images smaller until they fit, `drop_oldest` takes the oldest images out and leaves a marker in place of
each, `reject` refuses. A word alone holds for every rule that knows it.
"""

from __future__ import annotations

from gateway.policy.effective import OnExcess
from gateway.policy.mappings import ActionsByRule, joined_actions
from gateway.policy.rule import Rule

RULE = Rule(
    key="on_excess",
    summary="What becomes of a request above a rule: `shrink`, `drop_oldest` or `reject`, for all or by rule.",
    kind=ActionsByRule(),
    default=OnExcess(),
    join=joined_actions,
)
