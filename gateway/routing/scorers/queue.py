"""How long the work takes that is queued on the backend, ours and strangers'."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.routing.scorers.contract import Field, Scorer


def _cost_s(field: Field) -> Sequence[float]:
    return field.queue_s


QUEUE = Scorer("queue", _cost_s)
