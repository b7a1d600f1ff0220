"""The content's home may hold it although we never sent it there: another gateway, which shares nothing with us but the
order of homes, may have. What that would save is the work at home, as `work` counts it, times how likely that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.routing.scorers.contract import Field, Scorer


def _cost_s(field: Field) -> Sequence[float]:
    costs = [0.0] * len(field.views)
    if field.home is not None and field.holdings[field.home].images == 0:
        costs[field.home] = -field.work_s[field.home] * field.likelihood * field.profile.weights.work
    return costs


HOME = Scorer("home", _cost_s)
