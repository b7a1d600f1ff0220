"""What decodes beside us: every step of the engine carries a token of each running request.

In one that has just come back each counts for several (``ramp``).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.routing.scorers.contract import Field, Scorer


def _cost_s(field: Field) -> Sequence[float]:
    each_s = field.profile.running_s
    return [max(view.inflight_requests, view.engine_running or 0) * each_s / view.ramp for view in field.views]


RUNNING = Scorer("running", _cost_s)
